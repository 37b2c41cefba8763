
/*
 * Secrets from files: which bytes are the secret, and which files are none.
 */


#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sk_secret.h"


#define KEY  "0123456789abcdef"


static char         path[256];
static sk_secret_t  secret;


static int
setup(void **state)
{
    int          fd;
    const char  *dir = getenv("TMPDIR");

    (void) state;

    snprintf(path, sizeof(path), "%s/seckill-secret-XXXXXX", dir ? dir : "/tmp");
    fd = mkstemp(path);

    return fd == -1 ? -1 : close(fd);
}


static int
teardown(void **state)
{
    (void) state;

    return unlink(path);
}


static int
read_bytes(const char *text, size_t len, size_t least)
{
    int  fd;

    fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd != -1);
    assert_int_equal(write(fd, text, len), (ssize_t) len);
    assert_int_equal(close(fd), 0);

    memset(&secret, 'x', sizeof(secret));

    return sk_secret_read(&secret, path, least);
}


static void
one_line_end(void **state)
{
    size_t  i;

    static const char *const  good[][2] = {
        { KEY, KEY }, { KEY "\n", KEY }, { KEY "\r\n", KEY },
        { KEY "\n\n", KEY "\n" }, { KEY "\n\r\n", KEY "\n" }, { KEY "\r", KEY "\r" },
        { KEY " ", KEY " " }, { " \t" KEY, " \t" KEY }, { "\xff\xfe" KEY, "\xff\xfe" KEY },
        { KEY "\xef\xbb\xbf", KEY "\xef\xbb\xbf" }
    };

    (void) state;

    for (i = 0; i < unit_count(good); i++) {
        assert_int_equal(read_bytes(good[i][0], strlen(good[i][0]), SK_SECRET_KEY), 0);
        assert_int_equal(secret.len, strlen(good[i][1]));
        assert_string_equal(secret.text, good[i][1]);
        assert_string_equal(secret.error, "");
    }
}


static void
refused(void **state)
{
    size_t  i;
    char    nul[32] = { 0 };

    static const struct {
        const char  *text;
        size_t       len;
        const char  *error;
    } bad[] = {
#define bad(text, error)  { text, sizeof(text) - 1, error }
        bad("", "empty"),
        bad("\n", "empty"),
        bad("\r\n", "empty"),
        bad(KEY "\0", "holds a NUL byte"),
        bad(KEY "\0\n", "holds a NUL byte"),
        bad("\0" KEY, "holds a NUL byte"),
        bad("0123456789\0abcdef", "holds a NUL byte"),
        bad("\xef\xbb\xbf" KEY, "begins with a byte order mark"),
        bad("                 \n", "nothing but blanks"),
        bad("\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\t\v\f\r", "nothing but blanks"),
        bad("fifteen bytes..\n", "shorter than 16 bytes"),
        bad("fifteen bytes..\r\n", "shorter than 16 bytes")
#undef bad
    };

    (void) state;

    for (i = 0; i < unit_count(bad); i++) {
        assert_int_equal(read_bytes(bad[i].text, bad[i].len, SK_SECRET_KEY), -1);
        assert_string_equal(secret.error, bad[i].error);
        assert_int_equal(secret.len, 0);
        assert_string_equal(secret.text, "");
    }

    /* F-J1: what a power cut leaves is not the empty key */

    assert_int_equal(read_bytes(nul, sizeof(nul), SK_SECRET_KEY), -1);
    assert_string_equal(secret.error, "holds a NUL byte");
    assert_int_equal(read_bytes(nul, sizeof(nul), SK_SECRET_PASSWORD), -1);
}


static void
sizes(void **state)
{
    char  text[SK_SECRET_MAX + 8];

    (void) state;

    memset(text, 'k', sizeof(text));
    assert_int_equal(read_bytes(text, SK_SECRET_MAX, SK_SECRET_KEY), 0);
    assert_int_equal(secret.len, SK_SECRET_MAX);
    assert_int_equal(read_bytes(text, SK_SECRET_MAX + 1, SK_SECRET_KEY), -1);
    assert_string_equal(secret.error, "larger than 4096 bytes");
    assert_int_equal(read_bytes(text, sizeof(text), SK_SECRET_KEY), -1);

    text[SK_SECRET_MAX] = '\r';
    text[SK_SECRET_MAX + 1] = '\n';
    assert_int_equal(read_bytes(text, SK_SECRET_MAX + 2, SK_SECRET_KEY), 0);
    assert_int_equal(secret.len, SK_SECRET_MAX);

    /* a line end in the middle of what is too large makes it no smaller */

    assert_int_equal(read_bytes(text, SK_SECRET_MAX + 3, SK_SECRET_KEY), -1);
    assert_int_equal(read_bytes("p", 1, SK_SECRET_PASSWORD), 0);
    assert_string_equal(secret.text, "p");
}


static void
files(void **state)
{
    (void) state;

    assert_int_equal(sk_secret_read(&secret, "/nowhere/at/all", 1), -1);
    assert_string_equal(secret.error, strerror(ENOENT));
    assert_int_equal(sk_secret_read(&secret, "/", 1), -1);
    assert_string_equal(secret.error, strerror(EISDIR));

    /* F-J2: who else may read it is told, and is no error */

    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(read_bytes(KEY, 16, SK_SECRET_KEY), 0);
    assert_false(secret.open);
    assert_int_equal(chmod(path, 0604), 0);
    assert_int_equal(read_bytes(KEY, 16, SK_SECRET_KEY), 0);
    assert_true(secret.open);
    assert_int_equal(chmod(path, 0600), 0);

    sk_secret_wipe(&secret);
    assert_int_equal(secret.len, 0);
    assert_string_equal(secret.text, "");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(one_line_end),
        cmocka_unit_test(refused),
        cmocka_unit_test(sizes),
        cmocka_unit_test(files)
    };

    return cmocka_run_group_tests_name("secret", tests, setup, teardown);
}
