-- Close a sale for good once it is over and everything of it was written.
--
-- KEYS[1] activity, hash   KEYS[2] orders, stream   KEYS[3] dead, stream
-- KEYS[4] order_users, set
-- ARGV[1] expire_ms, when the keys of the sale may go   ARGV[2] epoch, ARGV[3] seq:
--         what was seen of this sale before   ARGV[4] "look" or "close"
--
-- Returns { status, rev, expire_ms, buyers in order_users }; status is
--   ready    it was looked only; nothing speaks against "close"
--   closed   state is "settled" from now on: nothing is sold, queued or given back
--   settled  was closed before; expire_ms is the one of then
--   running  refused: it has not ended by Redis TIME
--   unread, pending, dead   refused: there are such purchases
--   lost     refused: it is paused or lost, epoch or seq fell behind what was seen, or
--            there are fewer buyers than were counted
--   missing  there are no facts
-- Refusals write nothing; rev and expire_ms are 0 then.
--
-- Errors: "SECKILL ..." for bad arguments and damaged facts, and Redis' own.

local GROUP = "seckilld"

local call = redis.call
local facts, orders, dead, buyers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local expire_ms, how = ARGV[1], ARGV[4]

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly
local function number(text)
  if text and #text <= 15 and (text == "0" or string.find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

if #KEYS ~= 4 or #ARGV ~= 4 or not (how == "look" or how == "close")
   or not (number(expire_ms) and number(ARGV[2]) and number(ARGV[3])) then
  return refuse("close_out takes four keys, a time, an epoch, a seq, \"look\" or \"close\"")
end

local function value(list, name)
  for i = 1, #list, 2 do
    if list[i] == name then
      return list[i + 1]
    end
  end
end

if call("EXISTS", facts) == 0 then
  return { "missing", 0, 0, 0 }
end

local count = call("SCARD", buyers)
local fact = call("HMGET", facts, "state", "end_ms", "rev", "expire_ms", "epoch", "seq",
                  "buyers_extra")
local state, end_ms, rev = fact[1], number(fact[2]), number(fact[3])
local epoch, seq, extra = number(fact[5]), number(fact[6]), fact[7]
extra = extra and #extra <= 15 and string.find(extra, "^%-?%d+$") and tonumber(extra)
if not (state and end_ms and rev and epoch and seq) then
  return refuse("facts of the activity are missing or damaged")
end
if state == "settled" then
  return { "settled", rev, number(fact[4]) or number(expire_ms), count }
end
if state == "paused" or state == "lost" or epoch < number(ARGV[2])
   or (epoch == number(ARGV[2]) and seq < number(ARGV[3])) or (extra and count < seq + extra) then
  return { "lost", 0, 0, count }
end

local time = call("TIME")
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if now_ms <= end_ms then
  return { "running", 0, 0, count }
end

-- without a group nothing was read yet
if call("XLEN", orders) > 0 then
  local delivered, pending = "-", 0
  for _, group in ipairs(call("XINFO", "GROUPS", orders)) do
    if value(group, "name") == GROUP then
      delivered, pending = "(" .. value(group, "last-delivered-id"), value(group, "pending")
    end
  end
  if pending > 0 then
    return { "pending", 0, 0, count }
  end
  if delivered ~= "(18446744073709551615-18446744073709551615"  -- there is nothing behind it
     and #call("XRANGE", orders, delivered, "+", "COUNT", 1) > 0 then
    return { "unread", 0, 0, count }
  end
end
if call("XLEN", dead) > 0 then
  return { "dead", 0, 0, count }
end

if how == "look" then
  return { "ready", rev, 0, count }
end

call("HSET", facts, "state", "settled", "rev", rev + 1, "expire_ms", expire_ms)
return { "closed", rev + 1, number(expire_ms), count }
