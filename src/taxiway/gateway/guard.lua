-- The guard: called by the gateway for every request and answer.
--
-- A route says in its metadata what is to be checked. What the engine cannot take is answered here with 400;
-- what the engine blames on the caller with 500 leaves as 400; every error leaves in one shape.

local NAMESPACE = "taxiway.guard"
local GRPC_STATUS = {[400] = "3", [403] = "7", [413] = "8", [415] = "3"}

local function refuse(handle, status, why)
  local message = why.field
    and format("%s: expected %s, got %s", why.field, why.expected, why.got)
    or why.message
  local left = handle:streamInfo():dynamicMetadata()
  for _, part in ipairs({"field", "expected", "got"}) do
    if why[part] then left:set(NAMESPACE, part, why[part]) end
  end
  left:set(NAMESPACE, "grpc_status", GRPC_STATUS[status])
  handle:respond({[":status"] = tostring(status)}, message)
end

-- The whole body, as text; raises for one that is still encoded. Waiting for it ends the life of every object
-- that the handle gave before.
local function text_of(handle, encoding)
  if encoding and encoding ~= "identity" then
    error({status = 415, field = "Content-Encoding", expected = "gzip or none", got = excerpt(encoding, 1)}, 0)
  end
  local body = handle:body(true)
  return body:getBytes(0, body:length())
end

local function check_inference(handle)
  local headers = handle:headers()
  local header = headers:get("inference-header-content-length")
  check_request(text_of(handle, headers:get("content-encoding")), header)
end

local function check_call(handle, infers)
  local headers = handle:headers()
  local metadata = headers:get("x-model")
  local name, version = called_model(text_of(handle, headers:get("content-encoding")), metadata)
  headers = handle:headers()
  if version and not headers:get("x-model-version") then
    if infers then
      local expected = "an empty version: the gateway chooses it (an operator may send the metadata x-model-version)"
      error({status = 403, field = "model_version", expected = expected, got = excerpt(version, 1)}, 0)
    end
    if not version:find("^%d+$") then fault("version", "a number", excerpt(version, 1)) end
    headers:replace("x-taxiway-version", version)
  end
  headers:replace("x-taxiway-model", name)
  handle:clearRouteCache()
end

local CHECKS = {
  ["infer"] = check_inference,
  ["grpc-infer"] = function(handle) check_call(handle, true) end,
  ["grpc-model"] = function(handle) check_call(handle, false) end,
}

function envoy_on_request(handle)
  local check = CHECKS[handle:metadata():get("check")]
  if not check then return end
  local ok, why = pcall(check, handle)
  if ok then return end
  -- What is raised on purpose is a table and the caller's fault. Anything else is ours, and the request is not let
  -- through: by itself the gateway would do that when a script fails.
  if type(why) ~= "table" then
    handle:logErr("guard: " .. tostring(why))
    why = {status = 500, message = "the gateway could not check the request"}
  end
  refuse(handle, why.status or 400, why)
end

-- How the engine's sentences begin when it answers 500 although the request was wrong. What a model says about
-- its own failure begins otherwise.
local CALLERS_FAULT = {
  "failed to parse the request JSON buffer",
  "Unable to parse '",
  "Unable to set '",
  "attempt to access JSON",
}

local function callers_fault(message)
  for _, beginning in ipairs(CALLERS_FAULT) do
    if sub(message, 1, #beginning) == beginning then return true end
  end
  return false
end

-- The engine's sentence, as the inside of a JSON string.
local function sentence_of(text)
  local i = text:match('^%s*{%s*"error"%s*:%s*()"')
  if i and not text:find("[\128-\255]") then
    local ok, after = pcall(text_end, text, i)
    if ok and text:find("^%s*}%s*$", after) then return sub(text, i + 1, after - 2) end
  end
  if text == "" then return "the engine gave no reason" end
  return escape(text:sub(1, 2000))
end

local function normalise(handle, status)
  local body = handle:body(true)
  local headers = handle:headers()
  local message = sentence_of(body:getBytes(0, body:length()))
  if status == "500" and callers_fault(message) then
    status = "400"
    headers:replace(":status", status)
  end
  local id = escape(headers:get("x-request-id") or "")
  local text = format('{"error":"%s","code":%s,"request_id":"%s"}', message, status, id)
  body:setBytes(text)
  headers:replace("content-type", "application/json")
  headers:replace("content-length", tostring(#text))
end

-- What a route or a refusal means by its HTTP status, where the gateway's translation says something else:
-- it makes 400 INTERNAL (13), 404 UNIMPLEMENTED (12) and what it does not know, 413 above all, UNKNOWN (2).
local function correct_grpc(handle, headers, code)
  local left = handle:streamInfo():dynamicMetadata():get(NAMESPACE)
  local better = left and left["grpc_status"]
  if not better and (code == "12" or code == "13") then better = handle:metadata():get("grpc_status") end
  if not better and code == "2" then better = "8" end
  if better then headers:replace("grpc-status", better) end
end

function envoy_on_response(handle)
  local headers = handle:headers()
  local from_engine = headers:get("x-model-revision")
  if from_engine then
    local status = headers:get(":status")
    if byte(status, 1) >= 52 and headers:get("grpc-status") == nil then normalise(handle, status) end
    return
  end
  local code = headers:get("grpc-status")
  if code then correct_grpc(handle, headers, code) end
end
