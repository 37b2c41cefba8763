-- Queue accepted purchases again that were lost on their way to MySQL.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream
-- ARGV activity, head, now_ms, raise "0" or "1"; then for each purchase, if any:
--      user, quantity, epoch, seq, order_no, accepted_ms, request_id, ext, take
--
-- take "0": the user is in order_users and the units are taken.  take "1": Redis
-- forgot the purchase with its units; both are taken again if there are any.
-- seq "0": the identity is not known.  Then epoch, order_no and accepted_ms do
-- not count: the purchase gets the sale's epoch and its next seq, and head, 21
-- digits of time and activity, begins its order_no.
-- raise "1": the last call of this work: rev is one more, so that every node loads
-- the buyers again.
--
-- buyers_extra, where the facts have it, stays SCARD(order_users) - seq.
--
-- Returns one digit per purchase: 1 queued, 2 the user's place has changed (in
-- order_users with take "1", not there with take "0"), 3 not enough units, 4 the
-- stream takes no entry: nothing of the purchase is left.
--
-- Errors: "SECKILL ..." for bad arguments, a sale that is not there or settled;
-- and Redis' own.  All is proved before the first write, rights by writes that
-- change nothing; after it nothing is thrown.

local HEAD, PER = 4, 9  -- arguments, and those of one purchase

local call, pcall, find, format, sub = redis.call, redis.pcall, string.find, string.format, string.sub
local facts, stock, buyers, orders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local activity, head, now_ms, raise = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly
local function number(text)
  if text and #text <= 15 and (text == "0" or find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

-- never a number: a double has no room for all of them
local function is_id(text)
  return find(text, "^[1-9]%d*$")
         and (#text < 20 or (#text == 20 and text <= "18446744073709551615"))
end

local function failed(reply)
  return type(reply) == "table" and reply.err ~= nil
end

if #KEYS ~= 4 or #ARGV < HEAD or (#ARGV - HEAD) % PER ~= 0 then
  return refuse("replay takes four keys, four arguments and nine per purchase")
end
if not (is_id(activity) and find(head, "^%d+$") and #head == 21 and number(now_ms)
        and (raise == "0" or raise == "1")) then
  return refuse("activity, head, now_ms or raise is bad")
end
for i = HEAD + 1, #ARGV, PER do
  local seq = number(ARGV[i + 3])
  if not is_id(ARGV[i]) then
    return refuse("user is not an id")
  end
  if (number(ARGV[i + 1]) or 0) < 1 or not seq or not find(ARGV[i + 8], "^[01]$") then
    return refuse("quantity, seq or take is bad")
  end
  if seq > 0 and ((number(ARGV[i + 2]) or 0) < 1 or not number(ARGV[i + 5])
                  or not find(ARGV[i + 4], "^%d+$") or #ARGV[i + 4] ~= 32) then
    return refuse("epoch, order_no or accepted_ms is bad")
  end
end

local fact = call("HMGET", facts, "state", "epoch", "seq", "buyers_extra", "rev")
local state, epoch, seq, rev = fact[1], number(fact[2]), number(fact[3]), number(fact[5])
local counted = fact[4]
if not (state and epoch and seq and rev) then
  return refuse("facts of the activity are missing or damaged")
end
if counted and not find(counted, "^%-?%d+$") then
  return refuse("buyers_extra is not a number")
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

-- rights and memory, by writes that change nothing
call("DECRBY", stock, 0)
call("HSET", facts, "seq", fact[3])
call("HINCRBY", facts, "rev", 0)
call("SREM", buyers, "")

local verdicts, count, taken, given, extra = {}, 0, 0, 0, 0

for i = HEAD + 1, #ARGV, PER do
  local user, quantity, take = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 8] == "1"
  local verdict = "1"

  if call("SISMEMBER", buyers, user) == (take and 1 or 0) then
    verdict = "2"
  elseif take and quantity > left then
    verdict = "3"
  elseif take and failed(pcall("SADD", buyers, user)) then
    verdict = "4"
  else
    local fresh = ARGV[i + 3] == "0"
    local its_epoch, its_seq, order_no, accepted_ms = ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
    if fresh then
      its_epoch, its_seq, accepted_ms = fact[2], format("%d", seq + given + 1), now_ms
      order_no = format("%s%07d%04d", head, (seq + given + 1) % 10000000, sub(user, -4))
    end
    local added = pcall("XADD", orders, "*", "v", "1", "user", user, "activity", activity,
         "quantity", ARGV[i + 1], "epoch", its_epoch, "seq", its_seq, "order_no", order_no,
         "accepted_ms", accepted_ms, "request_id", ARGV[i + 6], "ext", ARGV[i + 7])

    if failed(added) then
      verdict = "4"
      if take then
        pcall("SREM", buyers, user)
      end
    else
      if take then
        left = left - quantity
        taken = taken + quantity
        extra = extra + 1
      end
      if fresh then
        given = given + 1
        extra = extra - 1
      end
    end
  end

  count = count + 1
  verdicts[count] = verdict
end

if taken > 0 then
  pcall("DECRBY", stock, taken)
end
if given > 0 then
  pcall("HSET", facts, "seq", format("%d", seq + given))
end
if counted and extra ~= 0 then
  pcall("HINCRBY", facts, "buyers_extra", extra)
end
if raise == "1" then
  pcall("HINCRBY", facts, "rev", 1)
end

return table.concat(verdicts)
