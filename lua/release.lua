-- Close purchases that MySQL has given up: the buyers hear "failed", their dead
-- letters go, and units that MySQL booked for the sale go back on sale.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] dead, stream     KEYS[5..] the result key of each buyer, string
-- ARGV epoch; total, units that MySQL's ledger ever gave back to the sale;
--      channel; result, JSON of a failure; then for each buyer: user, the id of
--      the dead letter or ""
--
-- Returns { units added, rev, stock left, buyers told, letters closed }.  As the
-- total is given and not the difference, running it again adds nothing.  A
-- result that says success stays.  The buyers stay in order_users: taking part
-- is once for ever.  One who was never counted in seq raises buyers_extra; one whom
-- Redis forgot was counted, and takes the empty place.
--
-- Errors: "SECKILL ..." for bad arguments, a sale that is not there or of
-- another epoch, a total below the one that is there, units for a settled sale;
-- and Redis' own.  All is proved before the first write.

local call, find = redis.call, string.find
local facts, stock, buyers, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local epoch, total, channel, result = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local count = #KEYS - 4

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

local function succeeded(text)
  local ok, value = pcall(cjson.decode, text)
  return ok and type(value) == "table" and value.success == true
end

if count < 0 or #ARGV ~= 4 + 2 * count or not (number(epoch) and number(total)) then
  return refuse("release takes an epoch, a total, a channel, a result and two arguments per buyer")
end
if not find(result, '^{"success":false,"reason":"[a-z_]+"}$') then
  return refuse("result is not a failure")
end

-- buyers_extra may be below zero; 0.1.0 does not keep it
local function signed(text)
  if text and number((string.gsub(text, "^%-", ""))) then
    return tonumber(text)
  end
end

local fact = call("HMGET", facts, "state", "epoch", "rev", "released", "seq", "buyers_extra")
local state, now_epoch, rev = fact[1], number(fact[2]), number(fact[3])
local released, seq, extra = number(fact[4] or "0"), number(fact[5]), signed(fact[6])
if not (state and now_epoch and rev and released and seq) or (fact[6] and not extra) then
  return refuse("facts of the activity are missing or damaged")
end
if now_epoch ~= number(epoch) then
  return refuse("the epoch of the sale is another one")
end

local left = number(call("GET", stock))
if not left then
  return refuse("stock is missing or not a number")
end

local delta = number(total) - released
if delta < 0 then
  return refuse("more units went back on sale than the ledger knows of")
end
if delta > 0 and state == "settled" then
  return refuse("the sale is settled")
end

call("SCARD", buyers)
call("XLEN", dead)

-- a Redis user that may do only half of this is refused whole; Redis 6 can't tell
local may = redis.acl_check_cmd
if may and not (may("HSET", facts, "rev", "1") and may("INCRBY", stock, "1")
                and (count == 0
                     or (may("SADD", buyers, "1") and may("SET", KEYS[5], result, "KEEPTTL")
                         and may("PUBLISH", channel, result) and may("XDEL", dead, "1-1")))) then
  return redis.error_reply("NOPERM release needs HSET, INCRBY, SADD, SET, PUBLISH and XDEL")
end

local tell = {}
for i = 1, count do
  local user, letter = ARGV[3 + 2 * i], ARGV[4 + 2 * i]
  if not is_id(user) then
    return refuse("user is not an id")
  end
  if letter ~= "" and not find(letter, "^%d+%-%d+$") then
    return refuse("letter is not an entry of a stream")
  end
  local old = call("GET", KEYS[4 + i])
  tell[i] = old ~= result and not (old and succeeded(old))
end

local told, closed = 0, 0

-- first what Redis refuses when it has no memory
if delta > 0 then
  call("HSET", facts, "released", total, "rev", rev + 1)
  rev = rev + 1
  left = call("INCRBY", stock, delta)
end

local added = 0
for i = 1, count do
  added = added + call("SADD", buyers, ARGV[3 + 2 * i])
end
if added > 0 and extra and call("SCARD", buyers) - seq > extra then
  call("HSET", facts, "buyers_extra", string.format("%d", call("SCARD", buyers) - seq))
end

for i = 1, count do
  local user, letter = ARGV[3 + 2 * i], ARGV[4 + 2 * i]
  if tell[i] then
    call("SET", KEYS[4 + i], result, "KEEPTTL")
    call("PUBLISH", channel, user .. " " .. result)
    told = told + 1
  end
  if letter ~= "" then
    closed = closed + call("XDEL", dead, letter)
  end
end

return { delta, rev, left, told, closed }
