-- Which model does a gRPC message name? Only the outermost fields of the message are read.

-- The unsigned number at `i` and the position after it. Lengths that matter are far below 2^53.
local function varint(s, i)
  local value, scale = 0, 1
  for j = i, i + 9 do
    local c = byte(s, j)
    if not c then break end
    if c < 128 then return value + c * scale, j + 1 end
    value = value + (c - 128) * scale
    scale = scale * 128
  end
  fault("message", "a well-formed protocol buffer", "a number without an end")
end

-- The strings in fields 1 and 2; of a field that comes twice the last counts, as everywhere in this format.
local function name_and_version(s)
  local found = {}
  local i, size = 1, #s
  while i <= size do
    local tag, length
    tag, i = varint(s, i)
    local kind, number = tag % 8, math.floor(tag / 8)
    if kind == 0 then
      length, i = varint(s, i)
      length = 0
    elseif kind == 1 then
      length = 8
    elseif kind == 5 then
      length = 4
    elseif kind == 2 then
      length, i = varint(s, i)
    else
      fault("message", "a well-formed protocol buffer", format("wire type %d", kind))
    end
    if length > size - i + 1 then fault("message", "a well-formed protocol buffer", "a field without an end") end
    if kind == 2 and number <= 2 then found[number] = sub(s, i, i + length - 1) end
    i = i + length
  end
  return found[1], found[2]
end

local function plain_name(text) return #text <= 63 and text:find("^[%w_-]+$") end

-- The message in a frame of the whole body `s`, or nil when it is compressed.
local function unframe(s)
  if #s < 5 then fault("message", "one gRPC message", format("%d bytes", #s)) end
  local flag, a, b, c, d = byte(s, 1, 5)
  local length = ((a * 256 + b) * 256 + c) * 256 + d
  if flag > 1 or length ~= #s - 5 then fault("message", "exactly one gRPC message", "something else") end
  if flag == 1 then return nil end
  return sub(s, 6)
end

-- The name and version that the message in body `s` asks for; a compressed message cannot be read and needs
-- its model in the metadata.
local function called_model(s, metadata)
  local message = unframe(s)
  local name, version
  if message then
    name, version = name_and_version(message)
  else
    name = metadata
    if not name then fault("message", "an uncompressed message, or the metadata 'x-model: NAME'", "a compressed one") end
  end
  if not name or name == "" then fault("model_name", "the name of a model", "nothing") end
  if not plain_name(name) then fault("model_name", "up to 63 letters, digits, '-' and '_'", excerpt(name, 1)) end
  return name, version ~= "" and version or nil
end
