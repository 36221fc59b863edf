-- JSON, read once from left to right without building values. Positions are byte offsets from 1.
--
-- Everything here works byte by byte on purpose: LuaJIT compiles such loops to machine code, while pattern
-- functions would keep them interpreted. A fault is raised with error() as a table {field, expected, got}.

local byte, sub, format = string.byte, string.sub, string.format

local MAX_DEPTH = 16

-- A piece of the caller's body that is safe to show: short, printable, one line.
local function excerpt(s, i)
  if i > #s then return "the end" end
  return (sub(s, i, i + 31):match('^"?[^",%]}%s]*"?'):gsub("[^\32-\126]", "?"))
end

local function fault(field, expected, got)
  error({field = field, expected = expected, got = got}, 0)
end

local function malformed(s, i, expected)
  local text = excerpt(s, i)
  if text == "" then text = sub(s, i, i):gsub("[^\32-\126]", "?") end
  fault(format("body, byte %d", i), expected, text)
end

-- The first byte at or after `i` that is not white space, and where it is.
local function space(s, i)
  local c = byte(s, i)
  while c == 32 or c == 10 or c == 13 or c == 9 do
    i = i + 1
    c = byte(s, i)
  end
  return i, c
end

-- `i` at an opening quote; the position after the closing one, and whether there was an escape.
local function text_end(s, i)
  local escaped = false
  i = i + 1
  local c = byte(s, i)
  while c ~= 34 do
    if c == nil then malformed(s, i, "a closing quote") end
    if c < 32 then malformed(s, i, "no control character in a string") end
    if c == 92 then
      escaped = true
      i = i + 1
      c = byte(s, i)
      if c == 117 then
        if not sub(s, i + 1, i + 4):find("^%x%x%x%x$") then malformed(s, i - 1, "four hexadecimal digits after \\u") end
      elseif not (c == 34 or c == 92 or c == 47 or c == 98 or c == 102 or c == 110 or c == 114 or c == 116) then
        malformed(s, i - 1, "an escape that JSON knows")
      end
    end
    i = i + 1
    c = byte(s, i)
  end
  return i + 1, escaped
end

-- `i` at '-' or a digit; the position after the number, the count of digits before the point, and its form:
-- 0 whole, 1 with a fraction, 2 with an exponent.
local function number_end(s, i)
  local c = byte(s, i)
  if c == 45 then
    i = i + 1
    c = byte(s, i)
  end
  local first = i
  if c == 48 then
    i = i + 1
    c = byte(s, i)
  else
    while c and c >= 48 and c <= 57 do
      i = i + 1
      c = byte(s, i)
    end
    if i == first then malformed(s, i, "a digit") end
  end
  local digits, form = i - first, 0
  if c == 46 then
    form = 1
    i = i + 1
    first = i
    c = byte(s, i)
    while c and c >= 48 and c <= 57 do
      i = i + 1
      c = byte(s, i)
    end
    if i == first then malformed(s, i, "a digit after the point") end
  end
  if c == 101 or c == 69 then
    form = 2
    i = i + 1
    c = byte(s, i)
    if c == 43 or c == 45 then
      i = i + 1
      c = byte(s, i)
    end
    first = i
    while c and c >= 48 and c <= 57 do
      i = i + 1
      c = byte(s, i)
    end
    if i == first then malformed(s, i, "a digit in the exponent") end
  end
  return i, digits, form
end

-- The position after true, false or null at `i`, or nil.
local function word_end(s, i, c)
  if c == 116 and sub(s, i, i + 3) == "true" then return i + 4 end
  if c == 102 and sub(s, i, i + 4) == "false" then return i + 5 end
  if c == 110 and sub(s, i, i + 3) == "null" then return i + 4 end
  return nil
end

-- Objects and arrays are walked by hand:  key, i = open_object(s, i, ...)  while key do ... key, i = next_member(s, i, ...) end
-- after which `i` is the position behind the object. (A visitor would need a closure for each, and code that makes
-- closures is not compiled.)

-- A table for the names that an object has had, with those that are expected already in it, so that it need not grow.
local function no_names()
  return {name = false, shape = false, datatype = false, data = false, parameters = false, inputs = false}
end

-- `i` at the quote of a member's name: the name, and the position of its value. Two members of one name, or a name
-- written with escapes, could be read differently by the engine.
local function member_at(s, i, c, where, seen)
  if c ~= 34 then malformed(s, i, "a member name in quotes") end
  local after, escaped = text_end(s, i)
  local key = sub(s, i + 1, after - 2)
  if escaped then fault(where, "member names without escapes", excerpt(s, i)) end
  if seen[key] then fault(where, "each member once", excerpt(s, i) .. " twice") end
  seen[key] = true
  i, c = space(s, after)
  if c ~= 58 then malformed(s, i, "':'") end
  return key, (space(s, i + 1))
end

-- `i` at the opening brace: name and value position of the first member; nil and the end of an empty object.
local function open_object(s, i, where, seen)
  local c
  i, c = space(s, i + 1)
  if c == 125 then return nil, i + 1 end
  return member_at(s, i, c, where, seen)
end

-- `i` behind a value: name and value position of the next member; nil and the end of the object.
local function next_member(s, i, where, seen)
  local c
  i, c = space(s, i)
  if c == 125 then return nil, i + 1 end
  if c ~= 44 then malformed(s, i, "',' or '}'") end
  i, c = space(s, i + 1)
  return member_at(s, i, c, where, seen)
end

-- `i` at the opening bracket: true and the position of the first element; false and the end of an empty array.
local function open_array(s, i)
  local c
  i, c = space(s, i + 1)
  if c == 93 then return false, i + 1 end
  return true, i
end

-- `i` behind an element: true and the position of the next; false and the end of the array.
local function next_element(s, i)
  local c
  i, c = space(s, i)
  if c == 93 then return false, i + 1 end
  if c ~= 44 then malformed(s, i, "',' or ']'") end
  return true, (space(s, i + 1))
end

-- The position after the value at `i`, whatever it is.
local function value_end(s, i, depth)
  local at, c = space(s, i)
  if c == 34 then return (text_end(s, at)) end
  if c == 123 or c == 91 then
    if depth >= MAX_DEPTH then malformed(s, at, format("no more than %d levels", MAX_DEPTH)) end
    if c == 123 then
      local seen = no_names()
      local key
      key, at = open_object(s, at, "body", seen)
      while key do key, at = next_member(s, value_end(s, at, depth + 1), "body", seen) end
      return at
    end
    local more
    more, at = open_array(s, at)
    while more do more, at = next_element(s, value_end(s, at, depth + 1)) end
    return at
  end
  if c == 45 or (c and c >= 48 and c <= 57) then return (number_end(s, at)) end
  return word_end(s, at, c) or malformed(s, at, "a JSON value")
end

-- `text` as the inside of a JSON string.
local function escape(text)
  return (text:gsub('[%c"\\\127-\255]', function(c)
    if c == '"' or c == "\\" then return "\\" .. c end
    if byte(c) > 126 then return "?" end
    return format("\\u%04x", byte(c))
  end))
end
