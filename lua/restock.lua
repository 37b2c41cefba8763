-- Add units to a sale, up to the total that MySQL's ledger holds for it.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string
-- ARGV epoch; limit, units reserved for the sale by all preheats and restocks;
--      restocked, those of the restocks alone
--
-- Returns { status, rev, stock left, units added }; status is
--   added      the sale has the difference now, rev is one more
--   unchanged  it has them all already
-- As the total is given and not the difference, running it again adds nothing.
--
-- Errors: "SECKILL ..." for bad arguments, a sale that is not there, settled or
-- of another epoch, and a limit below the one that is there; and Redis' own.
-- All is proved before the first write.

local call = redis.call
local facts, stock = KEYS[1], KEYS[2]
local epoch, limit, restocked = ARGV[1], ARGV[2], ARGV[3]

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly
local function number(text)
  if text and #text <= 15 and (text == "0" or string.find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

if #KEYS ~= 2 or #ARGV ~= 3
   or not (number(epoch) and number(limit) and number(restocked)) then
  return refuse("restock takes two keys, an epoch and two totals")
end

local fact = call("HMGET", facts, "state", "epoch", "rev", "stock_limit")
local state, now_epoch, rev, now_limit = fact[1], number(fact[2]), number(fact[3]), number(fact[4])
if not (state and now_epoch and rev and now_limit) then
  return refuse("facts of the activity are missing or damaged")
end

local left = number(call("GET", stock))
if not left then
  return refuse("stock is missing or not a number")
end
if now_epoch ~= number(epoch) then
  return refuse("the epoch of the sale is another one")
end

local delta = number(limit) - now_limit
if delta < 0 then
  return refuse("the sale has more units than the ledger knows of")
end
if delta == 0 then
  return { "unchanged", rev, left, 0 }
end
if state == "settled" then
  return refuse("the sale is settled")
end

-- a Redis user that may do only half of this is refused whole; Redis 6 can't tell
local may = redis.acl_check_cmd
if may and not (may("HSET", facts, "rev", "1") and may("INCRBY", stock, "1")) then
  return redis.error_reply("NOPERM restock needs HSET and INCRBY")
end

-- first what Redis refuses when it has no memory, and never the units alone
call("HSET", facts, "stock_limit", limit, "restocked", restocked, "rev", rev + 1)
return { "added", rev + 1, call("INCRBY", stock, delta), delta }
