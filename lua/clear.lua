-- Take down what is left of a sale before it is rebuilt from MySQL, or only look
-- whether that may be done.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream   KEYS[5] eligible, set   KEYS[6] dead, stream
-- ARGV[1] "look" or "clear"   ARGV[2] epoch, ARGV[3] seq: what was seen of this
--         sale before   ARGV[4] "1" when MySQL has orders of it, else "0"
-- ARGV[5] for "clear": the mark that the look gave, "" for none
--
-- Returns { status, rev, state, mark }; status is
--   ready     it was looked only; nothing speaks against "clear"
--   cleared   nothing is sold until restore.lua; rev and state are those that were
--             there, 0 and "" when the facts were lost
--   healthy   refused: it is open and nothing of it is missing
--   eligible  refused: only the registered users are missing
--   settled   refused
--   busy      refused: purchases are unread or pending, seckilld must write them first
--   moved     refused: purchases came or dead letters came or went since the look
-- state is "closed" for a sale that was closed before its restore began, also when
-- that one was cut off.  The group, the dead letters, results and the facts stay,
-- stopped; the stream too, unless it is at its last id.  Refusals write nothing.
--
-- Errors: "SECKILL ..." for bad arguments and keys of a wrong type, and Redis' own.

local GROUP = "seckilld"

local call = redis.call
local facts, stock, buyers, orders, eligible = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead = KEYS[6]
local how, epoch, seq, has_orders, mark = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly
local function number(text)
  if text and #text <= 15 and (text == "0" or string.find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

if #KEYS ~= 6 or #ARGV ~= 5 or not (how == "look" or how == "clear")
   or not (number(epoch) and number(seq)) or not string.find(has_orders, "^[01]$") then
  return refuse("clear takes six keys, \"look\" or \"clear\", an epoch, a seq, a flag and a mark")
end

local function value(list, name)
  for i = 1, #list, 2 do
    if list[i] == name then
      return list[i + 1]
    end
  end
end

local function is(key, kind)
  return call("TYPE", key).ok == kind
end

local fact = call("HMGET", facts, "state", "epoch", "rev", "seq", "was", "eligible",
                  "eligible_had", "buyers_extra")
local state, now_epoch, rev = fact[1] or "", number(fact[2]), number(fact[3]) or 0
local now_seq, was = number(fact[4]), fact[5]
if state == "closed" or was == "closed" then
  was = "closed"
else
  was = state
end

call("XLEN", orders)
call("XLEN", dead)
local count = call("SCARD", buyers)
local last = call("EXISTS", orders) == 1
             and value(call("XINFO", "STREAM", orders), "last-generated-id") or ""
local has_room = string.find(last, "^%d%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%-") ~= nil

-- as in pause.lua
local function is_whole()
  local extra = fact[8]
  extra = extra and #extra <= 15 and string.find(extra, "^%-?%d+$") and tonumber(extra)
  return now_epoch and now_seq and rev > 0
         and now_epoch >= number(epoch) and (now_epoch > number(epoch) or now_seq >= number(seq))
         and is(stock, "string") and number(call("GET", stock)) ~= nil
         and not (extra and count < now_seq + extra)
         and not (count == 0 and (now_seq > 0 or has_orders == "1"))
         and has_room
end

if state == "settled" then
  return { "settled", rev, state, "" }
end
if state == "open" and is_whole() then
  local registered = is(eligible, "set") and call("SCARD", eligible) or 0
  return { fact[6] == "1" and fact[7] == "1" and registered == 0 and "eligible" or "healthy",
           rev, state, "" }
end

-- without a group nothing was read yet
if call("XLEN", orders) > 0 then
  local delivered, pending = "-", 0
  for _, group in ipairs(call("XINFO", "GROUPS", orders)) do
    if value(group, "name") == GROUP then
      delivered, pending = "(" .. value(group, "last-delivered-id"), value(group, "pending")
    end
  end
  if pending > 0 or (delivered ~= "(18446744073709551615-18446744073709551615"
                     and #call("XRANGE", orders, delivered, "+", "COUNT", 1) > 0) then
    return { "busy", rev, was, "" }
  end
end

-- what was looked at is still what is there
local dead_last = call("EXISTS", dead) == 1
                  and value(call("XINFO", "STREAM", dead), "last-generated-id") or ""
local now_mark = table.concat({ fact[2] or "", fact[4] or "", call("XLEN", dead), dead_last, last }, " ")
if how == "look" then
  return { "ready", rev, was, now_mark }
end
if mark ~= "" and mark ~= now_mark then
  return { "moved", rev, was, now_mark }
end

-- without facts buyers would hear "not started"; "paused" says "wait" to all
call("HSET", facts, "state", "paused")
if was == "closed" then
  call("HSET", facts, "was", was)
end
call("UNLINK", stock, buyers)
if last ~= "" and not has_room then
  call("UNLINK", orders)
end
return { "cleared", rev, was, now_mark }
