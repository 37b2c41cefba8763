-- Queue the purchase of a dead letter again.
--
-- KEYS[1] activity, hash   KEYS[2] orders, stream   KEYS[3] dead, stream
-- KEYS[4] result, string, of the letter's user
-- ARGV[1] the letter's id   ARGV[2] its user
--
-- Returns { status, id }: "queued" and the new entry's id, or "gone" and "" when
-- there is no such letter: it was queued, dropped or released before.  The
-- buyer's failed result goes with the letter; this is the one way back from
-- failed to queueing, and the caller has recorded it.
--
-- Errors: "SECKILL ..." for bad arguments, a sale that is not there or settled,
-- a letter of another user or without all fields of a purchase; and Redis' own.
-- All is proved before the first write.

local FIELDS = { "v", "user", "activity", "quantity", "epoch", "seq", "order_no",
                 "accepted_ms", "request_id", "ext" }

local call = redis.call
local facts, orders, dead, result = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, user = ARGV[1], ARGV[2]

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

if #KEYS ~= 4 or #ARGV ~= 2 or not string.find(id, "^%d+%-%d+$") then
  return refuse("dead_retry takes four keys, a letter and a user")
end

local state = call("HGET", facts, "state")
if not state then
  return refuse("facts of the activity are missing or damaged")
end
if state == "settled" then
  return refuse("the sale is settled")
end
call("XLEN", orders)

local letter = call("XRANGE", dead, id, id)[1]
if not letter then
  return { "gone", "" }
end

local found = {}
for i = 1, #letter[2], 2 do
  found[letter[2][i]] = found[letter[2][i]] or letter[2][i + 1]
end

local entry = {}
for i, name in ipairs(FIELDS) do
  if not found[name] then
    return refuse("the letter has no " .. name)
  end
  entry[2 * i - 1], entry[2 * i] = name, found[name]
end
if found.user ~= user then
  return refuse("the letter is of another user")
end

local told = call("GET", result)
local ok, value = pcall(cjson.decode, told or "")

local new = call("XADD", orders, "*", unpack(entry))
call("XDEL", dead, id)
if told and not (ok and type(value) == "table" and value.success == true) then
  call("DEL", result)
end

return { "queued", new }
