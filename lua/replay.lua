-- Queue accepted purchases again that were lost on their way to MySQL.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream
-- ARGV activity, head, now_ms; then for each purchase: user, quantity, epoch,
--      seq, order_no, accepted_ms, request_id, ext, take
--
-- take "0": the user is in order_users and the units are taken.  take "1": Redis
-- forgot the purchase with its units; both are taken again if there are any.
-- seq "0": the identity is not known.  Then epoch, order_no and accepted_ms do
-- not count: the purchase gets the sale's epoch and its next seq, and head, 21
-- digits of time and activity, begins its order_no.
--
-- Returns one digit per purchase: 1 queued, 2 the user's place has changed (in
-- order_users with take "1", not there with take "0"), 3 not enough units.
--
-- Errors: "SECKILL ..." for bad arguments, a sale that is not there or settled;
-- and Redis' own.  All is proved before the first write.

local PER = 9  -- arguments of one purchase

local call, find, format, sub = redis.call, string.find, string.format, string.sub
local facts, stock, buyers, orders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local activity, head, now_ms = ARGV[1], ARGV[2], ARGV[3]

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly
local function number(text)
  if text and #text <= 15 and (text == "0" or find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

local function is_id(text)
  return find(text, "^[1-9]%d*$")
         and (#text < 20 or (#text == 20 and text <= "18446744073709551615"))
end

if #KEYS ~= 4 or #ARGV < 3 + PER or (#ARGV - 3) % PER ~= 0 then
  return refuse("replay takes four keys, three arguments and nine per purchase")
end
if not (is_id(activity) and find(head, "^%d+$") and #head == 21 and number(now_ms)) then
  return refuse("activity, head or now_ms is bad")
end
for i = 4, #ARGV, PER do
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

local fact = call("HMGET", facts, "state", "epoch", "seq")
local state, epoch, seq = fact[1], number(fact[2]), number(fact[3])
if not (state and epoch and seq) then
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

local verdicts, count, taken, given = {}, 0, 0, 0

for i = 4, #ARGV, PER do
  local user, quantity, take = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 8] == "1"
  local verdict = "1"

  if call("SISMEMBER", buyers, user) == (take and 1 or 0) then
    verdict = "2"
  elseif take and quantity > left then
    verdict = "3"
  else
    local its_epoch, its_seq, order_no, accepted_ms = ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
    if its_seq == "0" then
      given = given + 1
      its_epoch, its_seq, accepted_ms = fact[2], format("%d", seq + given), now_ms
      order_no = format("%s%07d%04d", head, (seq + given) % 10000000, sub(user, -4))
    end
    if take then
      left = left - quantity
      taken = taken + quantity
      call("SADD", buyers, user)
    end
    call("XADD", orders, "*", "v", "1", "user", user, "activity", activity,
         "quantity", ARGV[i + 1], "epoch", its_epoch, "seq", its_seq, "order_no", order_no,
         "accepted_ms", accepted_ms, "request_id", ARGV[i + 6], "ext", ARGV[i + 7])
  end

  count = count + 1
  verdicts[count] = verdict
end

if taken > 0 then
  call("DECRBY", stock, taken)
end
if given > 0 then
  call("HSET", facts, "seq", format("%d", seq + given))
end

return table.concat(verdicts)
