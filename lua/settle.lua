-- Tell buyers what became of their purchases: write, publish, acknowledge.
--
-- KEYS[1] orders, stream   KEYS[2..] the result key of each entry, string
-- ARGV[1] group, ARGV[2] channel, then for each entry: its id, user, result
--
-- A result is JSON as in src/shared/sk_result.h.  Published is "<user> <result>".
-- A success that is there is never made a failure: it stays, and is what is
-- published.  Returns the number of entries that this call acknowledged: called
-- again with the same entries it publishes again, changes no key, returns 0.
--
-- Errors: "SECKILL ..." for bad arguments, and Redis' own.  Types and arguments
-- are proved before the first write, and the acknowledgement comes last, so what
-- fails in between is simply settled again.

local ACKS = 1000  -- in one command, as unpack() is limited

local call = redis.call
local orders, group, channel = KEYS[1], ARGV[1], ARGV[2]
local entries = #KEYS - 1

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

local function is_u64(text)
  return #text < 20 or (#text == 20 and text <= "18446744073709551615")
end

local function is_entry(text)
  local ms, n = string.match(text, "^(%d+)%-(%d+)$")
  return ms and is_u64(ms) and is_u64(n)
end

-- true, false, or nil when it is no result
local function success(result)
  local ok, value = pcall(cjson.decode, result)
  if ok and type(value) == "table" and type(value.success) == "boolean" then
    return value.success
  end
end

if entries < 1 or #ARGV ~= 2 + 3 * entries then
  return refuse("settle takes a group, a channel and three arguments per result key")
end

call("XLEN", orders)

local ids, said, changed = {}, {}, {}
local known = {}  -- by key, as a buyer may be here twice

for i = 1, entries do
  local id, user, result = ARGV[3 * i], ARGV[3 * i + 1], ARGV[3 * i + 2]

  if not is_entry(id) then
    return refuse("entry id is not one of a stream")
  end
  if not (string.find(user, "^[1-9]%d*$") and is_u64(user)) then
    return refuse("user is not an id")
  end

  local succeeded = success(result)
  if succeeded == nil then
    return refuse("result is not a result")
  end

  local key = KEYS[i + 1]
  local old = known[key] or call("GET", key)
  if old and not succeeded and success(old) then
    result = old
  end

  ids[i], said[i], changed[i], known[key] = id, result, result ~= old, result
end

-- first what Redis refuses when it has no memory

for i = 1, entries do
  if changed[i] then
    call("SET", KEYS[i + 1], said[i], "KEEPTTL")
  end
end

for i = 1, entries do
  call("PUBLISH", channel, ARGV[3 * i + 1] .. " " .. said[i])
end

local acked = 0
for first = 1, entries, ACKS do
  local last = math.min(first + ACKS - 1, entries)
  acked = acked + call("XACK", orders, group, unpack(ids, first, last))
end

return acked
