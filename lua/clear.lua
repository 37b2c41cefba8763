-- Take down what is left of a sale before it is rebuilt from MySQL.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream
-- ARGV[1] epoch, ARGV[2] seq: what was seen of this sale before
--
-- Returns { status, rev, state }; status is
--   cleared  nothing is sold until restore.lua; rev and state are those that were
--            there, 0 and "" when the facts were lost
--   healthy  refused: it is open and nothing of it is missing
--   settled  refused
--   busy     refused: purchases are unread or pending, seckilld must write them first
-- The stream, its group, the dead letters and the facts stay, stopped.  Refusals write nothing.
--
-- Errors: "SECKILL ..." for bad arguments and keys of a wrong type, and Redis' own.

local GROUP = "seckilld"

local call = redis.call
local facts, stock, buyers, orders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local epoch, seq = ARGV[1], ARGV[2]

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly
local function number(text)
  if text and #text <= 15 and (text == "0" or string.find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

if #KEYS ~= 4 or #ARGV ~= 2 or not (number(epoch) and number(seq)) then
  return refuse("clear takes four keys, an epoch and a seq")
end

local function value(list, name)
  for i = 1, #list, 2 do
    if list[i] == name then
      return list[i + 1]
    end
  end
end

local fact = call("HMGET", facts, "state", "epoch", "rev", "seq")
local state, rev = fact[1] or "", number(fact[3]) or 0
call("SCARD", buyers)

if state == "settled" then
  return { "settled", rev, state }
end
if state == "open" and (number(fact[2]) or 0) >= number(epoch)
   and (number(fact[4]) or 0) >= number(seq) then
  return { "healthy", rev, state }
end

-- without a group nothing was read yet
if call("XLEN", orders) > 0 then
  local delivered, pending = "-", 0
  for _, group in ipairs(call("XINFO", "GROUPS", orders)) do
    if value(group, "name") == GROUP then
      delivered, pending = "(" .. value(group, "last-delivered-id"), value(group, "pending")
    end
  end
  if pending > 0 or #call("XRANGE", orders, delivered, "+", "COUNT", 1) > 0 then
    return { "busy", rev, state }
  end
end

-- without facts buyers would hear "not started"
call("HSET", facts, "state", state == "closed" and state or "paused")
call("UNLINK", stock, buyers)
return { "cleared", rev, state }
