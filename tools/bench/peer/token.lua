-- Tokens of the Lua peer: HS256 JSON web tokens read, queue tokens made, opaque
-- tokens hashed, with libcrypto through FFI.  Keyed once: a use costs no key
-- schedule.

local ffi = require "ffi"
local base64 = require "ngx.base64"
local cjson = require "cjson.safe"

local find, sub = string.find, string.sub

ffi.cdef [[
typedef struct hmac_ctx_st HMAC_CTX;
const void *EVP_sha256(void);
HMAC_CTX *HMAC_CTX_new(void);
int HMAC_Init_ex(HMAC_CTX *ctx, const void *key, int len, const void *md, void *engine);
int HMAC_Update(HMAC_CTX *ctx, const char *data, size_t len);
int HMAC_Final(HMAC_CTX *ctx, unsigned char *mac, unsigned int *len);
unsigned char *SHA256(const char *data, size_t len, unsigned char *digest);
]]

local C = ffi.C
local mac, mac_len = ffi.new("unsigned char[32]"), ffi.new("unsigned int[1]")
local hex = ffi.new("unsigned char[64]")
local digits = ffi.new("unsigned char[16]", "0123456789abcdef")

local token = {}

-- A function that gives the first "size" bytes of the HMAC of a text.
local function signer(key, size)
  local ctx = C.HMAC_CTX_new()
  if ctx == nil or C.HMAC_Init_ex(ctx, key, #key, C.EVP_sha256(), nil) ~= 1 then
    error("no HMAC")
  end

  return function(text)
    if C.HMAC_Init_ex(ctx, nil, 0, nil, nil) ~= 1
       or C.HMAC_Update(ctx, text, #text) ~= 1
       or C.HMAC_Final(ctx, mac, mac_len) ~= 1 then
      error("no HMAC")
    end
    return ffi.string(mac, size)
  end
end

function token.init(auth_key, queue_key)
  token.sign = signer(auth_key, 32)
  token.sign_queue = signer(queue_key, 16)
end

-- all tokens of one issuer begin alike: the last good header is remembered
local good_header

local function header_is_good(text)
  if text == good_header then
    return true
  end

  local header = cjson.decode(base64.decode_base64url(text) or "")
  if type(header) ~= "table" or header.alg ~= "HS256" or header.crit then
    return false
  end

  good_header = text
  return true
end

-- The user id, or nil.  now: epoch seconds.
function token.user(text, now)
  local dot = find(text, ".", 1, true)
  local last = dot and find(text, ".", dot + 1, true)
  if not last or not header_is_good(sub(text, 1, dot - 1)) then
    return nil
  end

  if base64.encode_base64url(token.sign(sub(text, 1, last - 1))) ~= sub(text, last + 1) then
    return nil
  end

  local payload = cjson.decode(base64.decode_base64url(sub(text, dot + 1, last - 1)) or "")
  if type(payload) ~= "table" then
    return nil
  end

  local user, exp = payload.sub, payload.exp
  if type(user) ~= "string" or not find(user, "^[1-9]%d*$") or #user > 20
     or type(exp) ~= "number" or now >= exp
     or (payload.nbf or 0) > now or (payload.iat or 0) > now then
    return nil
  end
  return user
end

-- What a buyer shows to ask for the result.
function token.queue(activity, user)
  local text = "1." .. activity .. "." .. user
  return base64.encode_base64url(text .. "." .. token.sign_queue(text))
end

-- SHA-256 in hex: Redis holds the hash of an opaque token, never the token.
function token.hash(text)
  C.SHA256(text, #text, mac)
  for i = 0, 31 do
    hex[2 * i] = digits[bit.rshift(mac[i], 4)]
    hex[2 * i + 1] = digits[bit.band(mac[i], 15)]
  end
  return ffi.string(hex, 64)
end

return token
