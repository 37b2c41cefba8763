/*
 * The session and the error classes; nothing here knows a table.
 */

#include <errmsg.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>

#include "skb_mysql.h"
#include "skb_session.h"

typedef struct {
    unsigned           number;
    skb_mysql_class_e  class;
} skb_mysql_error_t;

/* Numbers that the two servers' headers don't share are given as such. */
static const skb_mysql_error_t  skb_mysql_errors[] = {
    { ER_LOCK_DEADLOCK,                  SKB_MYSQL_CONFLICT },
    { ER_LOCK_WAIT_TIMEOUT,              SKB_MYSQL_CONFLICT },
    { ER_CHECKREAD,                      SKB_MYSQL_CONFLICT },
    { 3572 /* MySQL: lock nowait */,     SKB_MYSQL_CONFLICT },

    { ER_DUP_ENTRY,                      SKB_MYSQL_DUPLICATE },

    { ER_NET_PACKET_TOO_LARGE,           SKB_MYSQL_TOO_LARGE },

    { ER_ACCESS_DENIED_ERROR,            SKB_MYSQL_DENIED },
    { 1698 /* ...no password */,         SKB_MYSQL_DENIED },
    { ER_DBACCESS_DENIED_ERROR,          SKB_MYSQL_DENIED },
    { ER_BAD_DB_ERROR,                   SKB_MYSQL_DENIED },
    { ER_TABLEACCESS_DENIED_ERROR,       SKB_MYSQL_DENIED },
    { ER_COLUMNACCESS_DENIED_ERROR,      SKB_MYSQL_DENIED },
    { ER_SPECIFIC_ACCESS_DENIED_ERROR,   SKB_MYSQL_DENIED },

    { ER_BAD_NULL_ERROR,                 SKB_MYSQL_DATA },
    { ER_WARN_DATA_OUT_OF_RANGE,         SKB_MYSQL_DATA },
    { WARN_DATA_TRUNCATED,               SKB_MYSQL_DATA },
    { ER_TRUNCATED_WRONG_VALUE,          SKB_MYSQL_DATA },
    { ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, SKB_MYSQL_DATA },
    { ER_DATA_TOO_LONG,                  SKB_MYSQL_DATA },
    { ER_INVALID_CHARACTER_STRING,       SKB_MYSQL_DATA },
    { ER_CANT_AGGREGATE_2COLLATIONS,     SKB_MYSQL_DATA },
    { 3854 /* MySQL: can't convert */,   SKB_MYSQL_DATA },
    { 1690 /* out of range value */,     SKB_MYSQL_DATA },
    { ER_NO_REFERENCED_ROW,              SKB_MYSQL_DATA },
    { ER_NO_REFERENCED_ROW_2,            SKB_MYSQL_DATA },
    { ER_SIGNAL_EXCEPTION,               SKB_MYSQL_DATA },
    { 3819 /* MySQL: CHECK */,           SKB_MYSQL_DATA },
    { 4025 /* MariaDB: CHECK */,         SKB_MYSQL_DATA },
};


/*
 * What is not in the table is an outage: the server's state, a missing table,
 * a full disk.  Waiting is never wrong for long, blaming a purchase would be.
 */
skb_mysql_class_e
skb_mysql_class_of(unsigned number)
{
    if (number == 0) {
        return SKB_MYSQL_FINE;
    }

    for (size_t i = 0; i < sizeof(skb_mysql_errors) / sizeof(skb_mysql_errors[0]); i++) {
        if (skb_mysql_errors[i].number == number) {
            return skb_mysql_errors[i].class;
        }
    }

    return SKB_MYSQL_OUTAGE;
}


skb_mysql_class_e
skb_mysql_class(MYSQL *mysql)
{
    return skb_mysql_class_of(mysql_errno(mysql));
}


/*
 * The name in the certificate is that of host.  The two libraries ask for it in
 * different ways; without TLS neither of them sends the password.
 */
static int
skb_mysql_tls(MYSQL *mysql, const skb_config_mysql_t *conf)
{
#ifdef MARIADB_BASE_VERSION
    char      yes = 1;
#else
    unsigned  mode = SSL_MODE_VERIFY_IDENTITY;
#endif

    if (!conf->ssl) {
        return 0;
    }

#ifdef MARIADB_BASE_VERSION
    if (mysql_options(mysql, MYSQL_OPT_SSL_ENFORCE, &yes)
        || mysql_options(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes))
#else
    if (mysql_options(mysql, MYSQL_OPT_SSL_MODE, &mode))
#endif
    {
        return 1;
    }

    return (conf->ca[0] != '\0' && mysql_options(mysql, MYSQL_OPT_SSL_CA, conf->ca))
           || (conf->cert[0] != '\0' && mysql_options(mysql, MYSQL_OPT_SSL_CERT, conf->cert))
           || (conf->key[0] != '\0' && mysql_options(mysql, MYSQL_OPT_SSL_KEY, conf->key));
}


static int
skb_mysql_options(MYSQL *mysql, const skb_config_mysql_t *conf)
{
    unsigned  seconds = (conf->timeout_ms + 999) / 1000, no = 0;
    unsigned  protocol = conf->socket[0] != '\0' ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;

    /*
     * To the libraries "localhost" is a socket of their own, whatever the port
     * says.  And a server may ask a client for any of its files.
     */
    return mysql_options(mysql, MYSQL_OPT_PROTOCOL, &protocol)
           || mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &no)
           || skb_mysql_tls(mysql, conf)
           || mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &seconds)
           || mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &seconds)
           || mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &seconds)
           || mysql_options(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
}


static MYSQL *
skb_mysql_open(MYSQL *mysql, const skb_config_mysql_t *conf, char *error, size_t size)
{
    int     local = conf->socket[0] != '\0';
    char    password[SKB_PASSWORD_MAX];
    MYSQL  *opened;

    if (skb_config_password(conf->password_file, password, error, size) != 0) {
        return NULL;
    }

    opened = mysql_real_connect(mysql, local ? NULL : conf->host,
                                conf->user[0] != '\0' ? conf->user : NULL,
                                password, conf->database, conf->port,
                                local ? conf->socket : NULL, CLIENT_FOUND_ROWS);

    explicit_bzero(password, sizeof(password));

    if (opened == NULL) {
        snprintf(error, size, "connect: %s", mysql_error(mysql));
        return NULL;
    }

    /* whatever a library makes of its options */
    if (conf->ssl && mysql_get_ssl_cipher(mysql) == NULL) {
        snprintf(error, size, "connect: the server does not speak TLS, and \"ssl\" is on");
        return NULL;
    }

    return opened;
}


MYSQL *
skb_mysql_connect(const skb_config_t *config, skb_mysql_class_e *class, char *error,
    size_t size)
{
    MYSQL                     *mysql;
    skb_mysql_class_e          ignored;
    const skb_config_mysql_t  *conf = &config->mysql;

    if (class == NULL) {
        class = &ignored;
    }

    *class = SKB_MYSQL_OUTAGE;
    mysql = mysql_init(NULL);

    if (mysql == NULL) {
        snprintf(error, size, "out of memory");
        return NULL;
    }

    if (skb_mysql_options(mysql, conf)) {
        snprintf(error, size, "options: %s", mysql_error(mysql));
        mysql_close(mysql);
        return NULL;
    }

    if (skb_mysql_open(mysql, conf, error, size) == NULL) {
        *class = mysql_errno(mysql) ? skb_mysql_class(mysql) : SKB_MYSQL_DENIED;
        mysql_close(mysql);
        return NULL;
    }

    if (skb_session_set(mysql, conf) != 0) {
        snprintf(error, size, "session: %s", mysql_error(mysql));
        *class = skb_mysql_class(mysql);
        mysql_close(mysql);
        return NULL;
    }

    *class = SKB_MYSQL_FINE;

    return mysql;
}
