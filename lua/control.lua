-- What Redis says of all sales together, and its clock; writes nothing.
--
-- KEYS[1] control, hash
--
-- Returns { status, fields, seconds, microseconds }; status is
--   fine     there is such a hash
--   damaged  the key is of another type
--   none     it is not there: Redis lost its data, or nothing was preheated yet
-- fields: one value for each of NAMES, nil where there is none, and of a value
-- that is too long its length, as an integer.  The clock is Redis TIME, as text.
--
-- Nothing that is long comes back: see facts.lua.
--
-- Errors: Redis' own.

local LONGEST = 64

local NAMES = { "rev", "state", "token_key", "token_key_prev", "limit", "limit_burst" }

local call, key = redis.call, KEYS[1]

if #KEYS ~= 1 or #ARGV ~= 0 then
  return redis.error_reply("SECKILL control takes one key")
end

local time = call("TIME")

local fields = redis.pcall("HLEN", key)
if type(fields) == "table" then
  if string.find(fields.err, "WRONGTYPE", 1, true) then
    return { "damaged", {}, time[1], time[2] }
  end
  return fields
end
if fields == 0 then
  return { "none", {}, time[1], time[2] }
end

local values, short, at = {}, {}, {}
for i, name in ipairs(NAMES) do
  local length = call("HSTRLEN", key, name)
  values[i] = length > LONGEST and length
  if length <= LONGEST then
    short[#short + 1] = name
    at[#at + 1] = i
  end
end

if #short > 0 then
  for i, value in ipairs(call("HMGET", key, unpack(short))) do
    values[at[i]] = value
  end
end

return { "fine", values, time[1], time[2] }
