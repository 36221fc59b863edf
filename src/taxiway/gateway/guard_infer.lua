-- Is the body of an inference request one that the engine can take? The engine believes a shape before it has
-- counted the values, and a large one makes it give up the process.

local MAX_ELEMENTS = 2147483647
local MAX_RANK = 16

-- Per datatype: bytes of one element in the binary form, and how many digits are surely in range.
-- Of `whole` types the bounds are decimal digits, because a Lua number is exact only up to 2^53.
local TYPES = {
  BOOL = {bytes = 1, values = "true or false"},
  INT8 = {bytes = 1, whole = true, safe = 2, least = "128", most = "127"},
  INT16 = {bytes = 2, whole = true, safe = 4, least = "32768", most = "32767"},
  INT32 = {bytes = 4, whole = true, safe = 9, least = "2147483648", most = "2147483647"},
  INT64 = {bytes = 8, whole = true, safe = 18, least = "9223372036854775808", most = "9223372036854775807"},
  UINT8 = {bytes = 1, whole = true, safe = 2, most = "255"},
  UINT16 = {bytes = 2, whole = true, safe = 4, most = "65535"},
  UINT32 = {bytes = 4, whole = true, safe = 9, most = "4294967295"},
  UINT64 = {bytes = 8, whole = true, safe = 19, most = "18446744073709551615"},
  -- From here on a number rounds to infinity.
  FP32 = {bytes = 4, safe = 38, bound = 3.4028235677973366e38},
  FP64 = {bytes = 8, safe = 308, bound = math.huge},
  FP16 = {bytes = 2},
  BYTES = {text = true},
}
for name, t in pairs(TYPES) do
  t.name = name
  if t.whole then
    t.values = format("an integer from %s to %s", t.least and "-" .. t.least or "0", t.most)
  elseif t.text then
    t.values = "a string"
  elseif t.bound then
    t.values = format("a finite %s number", name)
  end
end
local NAMES = "BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FP16, FP32, FP64 or BYTES"

-- Does the whole number in s[i, after) lie outside the type's range? Compared digit by digit.
local function outside(s, i, after, t)
  local negative = byte(s, i) == 45
  local digits = sub(s, negative and i + 1 or i, after - 1)
  local bound = t.most
  if negative then bound = t.least or "0" end
  return #digits > #bound or (#digits == #bound and digits > bound)
end

-- The position after the number at `i`, or nil when it is none of type `t`.
local function number_of(s, i, c, t)
  if not (c == 45 or (c and c >= 48 and c <= 57)) then return nil end
  local after, digits, form = number_end(s, i)
  if t.whole then
    if form ~= 0 then return nil end
    if (digits > t.safe or (c == 45 and not t.least)) and outside(s, i, after, t) then return nil end
  elseif form == 2 or digits > t.safe then
    local value = tonumber(sub(s, i, after - 1))
    -- There is no value when the exponent is too long to be read at all.
    if not value or value >= t.bound or value <= -t.bound then return nil end
  end
  return after
end

local function element_end(s, i, c, t)
  if t.text then return c == 34 and text_end(s, i) or nil end
  if t.bytes == 1 and not t.whole then return (c == 116 or c == 102) and word_end(s, i, c) or nil end
  return number_of(s, i, c, t)
end

-- Count the values of the array at `i`, nested or flat, each of type `t`; the count and the position after it.
local function count(s, i, t, where)
  local depth, n, opened = 1, 0, true
  local c
  i = i + 1
  while true do
    i, c = space(s, i)
    if c == 91 then
      depth = depth + 1
      if depth > MAX_RANK then fault(where, format("no more than %d levels", MAX_RANK), "more") end
      i = i + 1
      opened = true
    else
      if not (c == 93 and opened) then
        local after = element_end(s, i, c, t)
        if not after then fault(format("%s[%d]", where, n), t.values, excerpt(s, i)) end
        n = n + 1
        i, c = space(s, after)
      end
      opened = false
      while c == 93 do
        depth = depth - 1
        i = i + 1
        if depth == 0 then return n, i end
        i, c = space(s, i)
      end
      if c ~= 44 then malformed(s, i, "',' or ']'") end
      i = i + 1
    end
  end
end

-- The names of an input's parts, made once: most requests have few inputs, and none of these names is shown.
local PLACES = {}

local function place(index)
  local found = PLACES[index]
  if found then return found end
  local where = format("inputs[%d]", index)
  found = {whole = where}
  for _, part in ipairs({"name", "datatype", "shape", "data", "parameters"}) do found[part] = where .. "." .. part end
  if index < MAX_RANK then PLACES[index] = found end
  return found
end

local function text_at(s, i, where)
  if byte(s, i) ~= 34 then fault(where, "a string", excerpt(s, i)) end
  local after, escaped = text_end(s, i)
  return sub(s, i + 1, after - 2), after, escaped
end

-- The number at `i`; `index` when it is an element of `where`.
local function integer_at(s, i, where, index)
  local c = byte(s, i)
  local from, value = i, 0
  while c and c >= 48 and c <= 57 do
    value = value * 10 + (c - 48)
    i = i + 1
    c = byte(s, i)
  end
  local digits = i - from
  -- JSON has no leading zeros: the number ends there, and what follows is no comma.
  if digits > 1 and byte(s, from) == 48 then return 0, from + 1 end
  if digits == 0 or digits > 15 or c == 46 or c == 101 or c == 69 then
    local wanted = digits == 0 and "a non-negative integer" or "a non-negative integer below 10^15"
    fault(index and format("%s[%d]", where, index) or where, wanted, excerpt(s, from))
  end
  return value, i
end

-- The number of values that the shape at `i` holds. A product that passes MAX_ELEMENTS on the way is refused
-- even if a later 0 would make it 0: nobody needs such a tensor, and the engine might multiply first.
local function shape_at(s, i, where)
  if byte(s, i) ~= 91 then fault(where, "an array of non-negative integers", excerpt(s, i)) end
  local product, reach, rank = 1, 1, 0
  local more
  more, i = open_array(s, i)
  while more do
    local dim
    dim, i = integer_at(s, i, where, rank)
    product = product * dim
    if dim > 1 then reach = reach * dim end
    rank = rank + 1
    if reach > MAX_ELEMENTS then
      fault(where, format("at most %d values", MAX_ELEMENTS), format("a dimension of %.0f", dim))
    end
    if rank > MAX_RANK then fault(where, format("at most %d dimensions", MAX_RANK), "more") end
    more, i = next_element(s, i)
  end
  return product, i
end

local function type_at(s, i, where)
  local name, after = text_at(s, i, where)
  local t = TYPES[name]
  if not t then fault(where, NAMES, excerpt(s, i)) end
  return t, after
end

-- Parameters of an input: the size of its binary data, all that matters here, and the position after them.
local function parameters_at(s, i, where)
  if byte(s, i) ~= 123 then fault(where, "an object", excerpt(s, i)) end
  local binary = false
  local seen = no_names()
  local key
  key, i = open_object(s, i, where, seen)
  while key do
    if key == "binary_data_size" then
      binary, i = integer_at(s, i, where .. ".binary_data_size")
    else
      i = value_end(s, i, 2)
    end
    key, i = next_member(s, i, where, seen)
  end
  return binary, i
end

-- Values in the JSON itself: as many as the shape says.
local function check_values(input, where)
  if input.binary then fault(where, "either data or parameters.binary_data_size", "both") end
  if input.values ~= input.product then
    fault(where, format("%.0f values, as shape says", input.product), format("%d", input.values))
  end
end

-- Values behind the JSON: as many bytes as the shape says; of strings at least their lengths.
local function check_binary(input, where)
  local field = where .. ".binary_data_size"
  local t = input.type
  local needed = input.product * (t.text and 4 or t.bytes)
  if input.binary ~= needed and not (t.text and input.binary > needed) then
    local at_least = t.text and "at least " or ""
    fault(field, format("%s%.0f bytes, as shape and datatype say", at_least, needed), format("%.0f", input.binary))
  end
end

-- One input at `i`: its count of binary bytes and the position after it.
local function input_at(s, i, index)
  local where = place(index)
  if byte(s, i) ~= 123 then fault(where.whole, "an object", excerpt(s, i)) end
  local input = {name = false, type = false, product = false, data = false, values = false, binary = false}
  local seen = no_names()
  local key
  key, i = open_object(s, i, where.whole, seen)
  while key do
    if key == "name" then
      input.name, i = text_at(s, i, where.name)
    elseif key == "datatype" then
      input.type, i = type_at(s, i, where.datatype)
    elseif key == "shape" then
      input.product, i = shape_at(s, i, where.shape)
    elseif key == "parameters" then
      input.binary, i = parameters_at(s, i, where.parameters)
    elseif key == "data" then
      if byte(s, i) ~= 91 then fault(where.data, "an array", excerpt(s, i)) end
      input.data = i
      if input.type and input.type.values then
        input.values, i = count(s, i, input.type, where.data)
      else
        i = value_end(s, i, 0)
      end
    else
      i = value_end(s, i, 2)
    end
    key, i = next_member(s, i, where.whole, seen)
  end
  if not input.name then fault(where.name, "a string", "nothing") end
  if not input.type then fault(where.datatype, NAMES, "nothing") end
  if not input.product then fault(where.shape, "an array of non-negative integers", "nothing") end
  if input.data then
    if not input.type.values then fault(where.data, "FP16 as binary data; JSON has no form for it", "an array") end
    if not input.values then input.values = count(s, input.data, input.type, where.data) end
    check_values(input, where.data)
  elseif input.binary then
    check_binary(input, where.parameters)
  else
    fault(where.data, "an array of values", "nothing")
  end
  return input.binary or 0, i
end

local function inputs_at(s, i)
  if byte(s, i) ~= 91 then fault("inputs", "an array of objects", excerpt(s, i)) end
  local binary, number = 0, 0
  local more
  more, i = open_array(s, i)
  while more do
    local size
    size, i = input_at(s, i, number)
    binary = binary + size
    number = number + 1
    more, i = next_element(s, i)
  end
  if number == 0 then fault("inputs", "at least one input", "none") end
  return binary, i
end

local function output_at(s, i, where)
  if byte(s, i) ~= 123 then fault(where, "an object", excerpt(s, i)) end
  local seen = no_names()
  local name, key
  key, i = open_object(s, i, where, seen)
  while key do
    if key == "name" then
      name, i = text_at(s, i, where .. ".name")
    else
      i = value_end(s, i, 2)
    end
    key, i = next_member(s, i, where, seen)
  end
  if not name then fault(where .. ".name", "a string", "nothing") end
  return i
end

local function outputs_at(s, i)
  if byte(s, i) ~= 91 then fault("outputs", "an array of objects", excerpt(s, i)) end
  local index = 0
  local more
  more, i = open_array(s, i)
  while more do
    more, i = next_element(s, output_at(s, i, format("outputs[%d]", index)))
    index = index + 1
  end
  return i
end

-- The JSON part of a request; returns how many binary bytes must follow it.
local function check_json(s)
  local i, c = space(s, 1)
  if c == nil then fault("body", "a JSON object", "nothing") end
  if c ~= 123 then malformed(s, i, "a JSON object") end
  local seen = no_names()
  local binary, key
  key, i = open_object(s, i, "body", seen)
  while key do
    if key == "inputs" then
      binary, i = inputs_at(s, i)
    elseif key == "outputs" then
      i = outputs_at(s, i)
    elseif key == "id" then
      local _
      _, i = text_at(s, i, "id")
    else
      if key == "parameters" and byte(s, i) ~= 123 then fault("parameters", "an object", excerpt(s, i)) end
      i = value_end(s, i, 1)
    end
    key, i = next_member(s, i, "body", seen)
  end
  if not binary then fault("inputs", "an array of objects", "nothing") end
  i = space(s, i)
  if i <= #s then malformed(s, i, "the end of the body") end
  return binary
end

local HEADER = "Inference-Header-Content-Length"

-- The length of the JSON part of a body of `total` bytes, of which the header says `text`.
local function json_length(text, total)
  local length = text:find("^%d+$") and #text <= 10 and tonumber(text)
  if not length or length < 2 or length > total then
    fault(HEADER, format("a whole number from 2 to %d, the length of the body", total), excerpt(text, 1))
  end
  return length
end

-- The body of a request; `header` is what Inference-Header-Content-Length said, if anything.
local function check_request(body, header)
  local total = #body
  local length = header and json_length(header, total) or total
  local binary = check_json(header and sub(body, 1, length) or body)
  if binary > 0 and not header then
    fault(HEADER, "the length of the JSON part, because binary data is announced", "nothing")
  end
  if binary ~= total - length then
    fault("body", format("%.0f bytes of binary data after the JSON", binary), format("%d", total - length))
  end
end
