-- Queue the purchase of a dead letter again.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream   KEYS[5] dead, stream
-- KEYS[6] result, string, of the letter's user
-- ARGV[1] the letter's id   ARGV[2] its user
-- ARGV[3] fresh "0" or "1": its epoch and seq are those of somebody else's order, so
--      it gets the sale's epoch, the next seq, and an order_no with that seq
-- ARGV[4] take "0" or "1": no unit is kept for it, so its units are taken from stock
--
-- Returns { status, id }: "queued" and the new entry's id; "gone" and "" when
-- there is no such letter: it was queued, dropped or released before; "none" and ""
-- when take is "1" and not enough units are left.  The buyer's failed result goes
-- with the letter; this is the one way back from failed to queueing, and the caller
-- has recorded it.  The user is in order_users afterwards; a seq that is given to
-- somebody who is there already lowers buyers_extra.
--
-- Errors: "SECKILL ..." for bad arguments, a sale that is not there or settled,
-- a letter of another user or without all fields of a purchase; and Redis' own.
-- All is proved before the first write.

local FIELDS = { "v", "user", "activity", "quantity", "epoch", "seq", "order_no",
                 "accepted_ms", "request_id", "ext" }

local call, find, sub = redis.call, string.find, string.sub
local facts, stock, buyers, orders, dead, result = unpack(KEYS)
local id, user, fresh, take = ARGV[1], ARGV[2], ARGV[3] == "1", ARGV[4] == "1"

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly
local function number(text)
  if text and #text <= 15 and (text == "0" or find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

-- buyers_extra may be below zero; 0.1.0 does not keep it
local function signed(text)
  if text and number((string.gsub(text, "^%-", ""))) then
    return tonumber(text)
  end
end

if #KEYS ~= 6 or #ARGV ~= 4 or not find(id, "^%d+%-%d+$")
   or not (find(ARGV[3], "^[01]$") and find(ARGV[4], "^[01]$")) then
  return refuse("dead_retry takes six keys, a letter, a user and two flags")
end

local fact = call("HMGET", facts, "state", "epoch", "seq", "buyers_extra")
local state, seq, extra = fact[1], number(fact[3]), signed(fact[4])
if not (state and number(fact[2]) and seq) or (fact[4] and not extra) then
  return refuse("facts of the activity are missing or damaged")
end
if state == "settled" then
  return refuse("the sale is settled")
end

local left = number(call("GET", stock))
if not left then
  return refuse("stock is missing or not a number")
end
call("SCARD", buyers)
call("XLEN", orders)

local letter = call("XRANGE", dead, id, id)[1]
if not letter then
  return { "gone", "" }
end

local found = {}
for i = 1, #letter[2], 2 do
  found[letter[2][i]] = found[letter[2][i]] or letter[2][i + 1]
end
for _, name in ipairs(FIELDS) do
  if not found[name] then
    return refuse("the letter has no " .. name)
  end
end
if found.user ~= user or not find(user, "^[1-9]%d*$") then
  return refuse("the letter is of another user")
end

local quantity = number(found.quantity)
if not quantity or quantity < 1 then
  return refuse("the letter's quantity is not a number")
end
if take and quantity > left then
  return { "none", "" }
end

if fresh then
  if #found.order_no ~= 32 or not find(found.order_no, "^%d+$") then
    return refuse("the letter's order_no is not one")
  end
  found.epoch, found.seq = fact[2], string.format("%d", seq + 1)
  found.order_no = string.format("%s%07d%s", sub(found.order_no, 1, 21), (seq + 1) % 10000000,
                                 sub(found.order_no, 29))
end

-- a Redis user that may do only half of this is refused whole; Redis 6 can't tell
local may = redis.acl_check_cmd
if may and not (may("XADD", orders, "*", "v", "1") and may("XDEL", dead, id)
                and may("HSET", facts, "seq", "1") and may("SADD", buyers, user)
                and may("DECRBY", stock, "1") and may("DEL", result)) then
  return redis.error_reply("NOPERM dead_retry needs XADD, XDEL, HSET, SADD, DECRBY and DEL")
end

local told = call("GET", result)
local ok, value = pcall(cjson.decode, told or "")

local entry = {}
for i, name in ipairs(FIELDS) do
  entry[2 * i - 1], entry[2 * i] = name, found[name]
end

-- first what can fail: a stream that is at its last id
local new = call("XADD", orders, "*", unpack(entry))
call("XDEL", dead, id)
if take then
  call("DECRBY", stock, found.quantity)
end

local given = fresh and 1 or 0
local known = call("SADD", buyers, user) == 0
if fresh then
  call("HSET", facts, "seq", found.seq)
end
if extra and (fresh or not known) then
  call("HSET", facts, "buyers_extra", string.format("%d",
       math.max(extra - given, call("SCARD", buyers) - seq - given)))
end

if told and not (ok and type(value) == "table" and value.success == true) then
  call("DEL", result)
end

return { "queued", new }
