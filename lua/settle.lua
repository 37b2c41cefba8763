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

-- Entries of one command, as unpack() is limited; what is more follows in a next
-- stretch, whole in itself.
local CHUNK = 1000

local call, find = redis.call, string.find
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

-- true, false, or nil when it is no result; our own spelling is known at sight
local function success(result)
  if find(result, '^{"success":true,"order_id":%d+,"order_no":"%d+"}$') then
    return true
  elseif find(result, '^{"success":false,"reason":"[a-z_]+"}$') then
    return false
  end

  local ok, value = pcall(cjson.decode, result)
  if ok and type(value) == "table" and type(value.success) == "boolean" then
    return value.success
  end
end

if entries < 1 or #ARGV ~= 2 + 3 * entries then
  return refuse("settle takes a group, a channel and three arguments per result key")
end

call("XLEN", orders)

local ids, told = {}, {}
local good = {}  -- successes by key, as a buyer may be here twice

for i = 1, entries do
  local key, id, user, result = KEYS[i + 1], ARGV[3 * i], ARGV[3 * i + 1], ARGV[3 * i + 2]

  if not ((#id <= 20 and find(id, "^%d+%-%d+$")) or is_entry(id)) then
    return refuse("entry id is not one of a stream")
  end
  if not (find(user, "^[1-9]%d*$") and is_u64(user)) then
    return refuse("user is not an id")
  end

  local succeeded = success(result)
  if succeeded == nil then
    return refuse("result is not a result")
  elseif succeeded then
    good[key] = result
  end

  ids[i], told[2 * i - 1], told[2 * i] = id, key, good[key] or result
end

-- Some have a result: a success stays, and so does an expiry.
local function keep(first, last)
  local old = {}

  for i = first, last do
    local key = told[2 * i - 1]

    old[i] = call("GET", key)
    if old[i] and not good[key] and success(old[i]) then
      told[2 * i] = old[i]
    end
  end

  for i = first, last do
    if told[2 * i] ~= old[i] then
      call("SET", told[2 * i - 1], told[2 * i], "KEEPTTL")
    end
  end
end

local acked = 0

for first = 1, entries, CHUNK do
  local last = math.min(first + CHUNK - 1, entries)

  -- first what Redis refuses when it has no memory
  if call("EXISTS", unpack(KEYS, first + 1, last + 1)) > 0 then
    keep(first, last)
  else
    call("MSET", unpack(told, 2 * first - 1, 2 * last))
  end
  for i = first, last do
    call("PUBLISH", channel, ARGV[3 * i + 1] .. " " .. told[2 * i])
  end
  acked = acked + call("XACK", orders, group, unpack(ids, first, last))
end

return acked
