-- Look whether a sale is whole, and stop one that is not: Redis lost data of it.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream   KEYS[5] eligible, set
-- ARGV[1] epoch, ARGV[2] seq: what was seen of this sale before
-- ARGV[3] "1" when MySQL has orders of it, so that there must be buyers, else "0"
--
-- Returns { status, epoch, rev, seq, lost, state, end_ms, expire_ms, surplus }:
-- what is there now; status is
--   fine     nothing is missing, or it is settled
--   paused   something is missing: state is "paused" from now on
--   stopped  something is missing, and nothing is sold anyway (paused, closed, lost)
--   waiting  only the registered users are missing: admit.lua refuses until the
--            shop has loaded them, and nothing needs to be restored
--   missing  there are no facts; the numbers are 0
-- lost names what is missing, with commas: seq (epoch or seq are behind what was
-- seen), stock, order_users, orders, eligible, facts (state is "lost").  surplus
-- is how many buyers there are beyond what was counted: not a loss.
--
-- While the sale is whole and open or closed it also writes down, once, what later
-- looks need: buyers_extra, and eligible_had when registered users are there.
-- Called again it changes nothing.  The caller raises rev of the control hash
-- after "paused".
--
-- Errors: "SECKILL ..." for bad arguments and damaged facts, and Redis' own.

local call = redis.call
local facts, stock, buyers, orders, eligible = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local epoch, seq, has_orders = ARGV[1], ARGV[2], ARGV[3]

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly
local function number(text)
  if text and #text <= 15 and (text == "0" or string.find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

if #KEYS ~= 5 or #ARGV ~= 3 or not (number(epoch) and number(seq))
   or not string.find(has_orders, "^[01]$") then
  return refuse("pause takes five keys, an epoch, a seq and a flag")
end

if call("HEXISTS", facts, "state") == 0 then
  return { "missing", 0, 0, 0, "facts", "", 0, 0, 0 }
end

local fact = call("HMGET", facts, "state", "epoch", "rev", "seq", "end_ms", "expire_ms",
                  "eligible", "eligible_had", "buyers_extra")
local state, now_epoch, rev, now_seq = fact[1], number(fact[2]), number(fact[3]), number(fact[4])
local end_ms, expire_ms = number(fact[5]) or 0, number(fact[6]) or 0
if not (now_epoch and rev and now_seq) then
  return refuse("facts of the activity are missing or damaged")
end
state = string.sub(state, 1, 11)

-- it may be negative: a repair gives a seq to somebody who is a buyer already
local extra = fact[9]
extra = extra and #extra <= 15 and string.find(extra, "^%-?%d+$") and tonumber(extra) or nil

local function is(key, kind)
  return call("TYPE", key).ok == kind
end

-- at its last id it takes no purchase any more; ours begin with a time of 13 digits
local function has_room(stream)
  local info = call("XINFO", "STREAM", stream)
  for i = 1, #info, 2 do
    if info[i] == "last-generated-id" then
      return string.find(info[i + 1], "^%d%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%-")
    end
  end
end

-- seq was read first, the buyers after it
local count = is(buyers, "set") and call("SCARD", buyers) or 0
local surplus = extra and count - now_seq - extra or 0
local by_registration, had = fact[7] == "1", fact[8] == "1"
local registered = by_registration and is(eligible, "set") and call("SCARD", eligible) or 0
local lost = {}

if state == "settled" then
  return { "fine", now_epoch, rev, now_seq, "", state, end_ms, expire_ms, 0 }
end
if state == "lost" then
  return { "stopped", now_epoch, rev, now_seq, "facts", state, end_ms, expire_ms, 0 }
end

if now_epoch < number(epoch) or (now_epoch == number(epoch) and now_seq < number(seq)) then
  lost[#lost + 1] = "seq"
end
if not (is(stock, "string") and call("STRLEN", stock) <= 15 and number(call("GET", stock))) then
  lost[#lost + 1] = "stock"
end
if surplus < 0 or (count == 0 and (now_seq > 0 or has_orders == "1")) then
  lost[#lost + 1] = "order_users"
end
if not (is(orders, "stream") and has_room(orders)) then
  lost[#lost + 1] = "orders"
end

local broken = #lost > 0
if by_registration and had and registered == 0 then
  lost[#lost + 1] = "eligible"
end

local function answer(status)
  return { status, now_epoch, rev, now_seq, table.concat(lost, ","), state, end_ms, expire_ms,
           surplus }
end

if not broken then
  if not extra and (state == "open" or state == "closed") then
    call("HSET", facts, "buyers_extra", string.format("%d", count - now_seq))
  end
  if by_registration and registered > 0 and not had then
    call("HSET", facts, "eligible_had", "1")
  end
  return answer(#lost > 0 and "waiting" or "fine")
end
if state ~= "open" then
  return answer("stopped")
end

state, rev = "paused", rev + 1
call("HSET", facts, "state", state, "rev", rev)
return answer("paused")
