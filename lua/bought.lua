-- Has this user bought, and is the sale whole enough for a "no"?  Writes nothing.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream   KEYS[5] eligible, set
-- ARGV[1] the user
--
-- Returns { status, state, epoch, seq, member }: status is one of facts.lua's, and
-- the same rules make it; for "none" and "damaged" the others are "", 0, 0, 0.
-- This is facts.lua for one question, in half of its time: whoever opens the
-- page may ask it.
--
-- Errors: Redis' own.

local LONGEST = 64

local call, find = redis.call, string.find
local key, stock, buyers, orders, eligible = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

if #KEYS ~= 5 or #ARGV ~= 1 then
  return redis.error_reply("SECKILL bought takes five keys and a user")
end

-- a decimal that a double holds exactly, or nil
local function number(text)
  if text and #text <= 15 and (text == "0" or find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

local fact = redis.pcall("HMGET", key, "state", "epoch", "seq", "buyers_extra", "eligible",
                         "eligible_had")
if fact.err then
  if find(fact.err, "WRONGTYPE", 1, true) then
    return { "damaged", "", 0, 0, 0 }
  end
  return fact
end

local state, epoch, seq = fact[1], number(fact[2]), number(fact[3])
if not state then
  return { call("EXISTS", key, stock, buyers, orders) == 0 and "none" or "damaged", "", 0, 0, 0 }
end

-- it may be negative; a missing one is not judged
local extra = fact[4]
if extra then
  extra = number(extra) or (string.sub(extra, 1, 1) == "-" and number(string.sub(extra, 2))
                            and tonumber(extra))
end
if #state > LONGEST or not epoch or not seq or (fact[4] and not extra) then
  return { "damaged", "", 0, 0, 0 }
end

local member = call("SISMEMBER", buyers, ARGV[1])
local bought = call("SCARD", buyers)
local must = seq + (extra or 0)

local status = "whole"
if call("EXISTS", stock) == 0 then
  status = "stock"
elseif (extra and bought < must) or (must > 0 and bought == 0) then
  status = "order_users"
elseif call("EXISTS", orders) == 0 then
  status = "orders"
elseif fact[5] == "1" and fact[6] == "1" and call("SCARD", eligible) == 0 then
  status = "eligible"
end

return { status, state, epoch, seq, member }
