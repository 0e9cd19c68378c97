/* A strict reader of JSON (RFC 8259, valid UTF-8 only), to look at what the library writes. Test data are small: it
 * recurses. */
#ifndef JSON_VALUE_H
#define JSON_VALUE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct json_value {
    char kind; /* 'o', 'a', 's', 'n', 't', 'f', '0' (null) */
    double number;
    char *text;               /* of a string; with U+0000 inside it would seem shorter */
    struct json_value *value; /* items of an array, values of an object */
    char **key;
    size_t count;
} json_value;

typedef struct json_reader {
    const char *at, *end;
} json_reader;

static inline void json_wrong(const json_reader *r, const char *what)
{
    fail_msg("JSON: %s before '%.40s'", what, r->at);
}

static inline void json_blanks(json_reader *r)
{
    while (r->at < r->end && strchr(" \t\n\r", *r->at) != NULL) r->at++;
}

/* One letter of UTF-8 as it stands; refuses what the standard does. */
static inline void json_letter(json_reader *r, char *out, size_t *size)
{
    const unsigned char *s = (const unsigned char *)r->at;
    const size_t left = (size_t)(r->end - r->at);
    size_t length = 1;
    uint32_t code = s[0];
    if (s[0] >= 0xF0) length = 4, code = s[0] & 0x07u;
    else if (s[0] >= 0xE0) length = 3, code = s[0] & 0x0Fu;
    else if (s[0] >= 0x80) length = 2, code = s[0] & 0x1Fu;
    if (s[0] < 0x20 || (s[0] >= 0x80 && s[0] < 0xC0) || length > left) json_wrong(r, "a byte that may not stand there");
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80) json_wrong(r, "a letter that is cut off");
        code = code << 6 | (s[i] & 0x3Fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) json_wrong(r, "no letter");
    memcpy(out + *size, s, length);
    *size += length;
    r->at += length;
}

static inline void json_escape(json_reader *r, char *out, size_t *size)
{
    static const char letters[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    r->at++;
    for (const char *c = letters; *c != '\0'; c += 2)
        if (*r->at == *c) {
            out[(*size)++] = c[1];
            r->at++;
            return;
        }
    if (*r->at != 'u' || r->end - r->at < 5) json_wrong(r, "an unknown escape");
    char digits[5] = {0}, *rest;
    memcpy(digits, r->at + 1, 4);
    const unsigned long code = strtoul(digits, &rest, 16);
    if (rest != digits + 4 || code > 0x7F) json_wrong(r, "an escape beyond ASCII, which is not needed");
    out[(*size)++] = (char)code;
    r->at += 5;
}

static inline char *json_text(json_reader *r)
{
    if (r->at >= r->end || *r->at != '"') json_wrong(r, "a string is missing");
    char *out = malloc((size_t)(r->end - r->at) + 1);
    size_t size = 0;
    assert_non_null(out);
    for (r->at++; r->at < r->end && *r->at != '"';) {
        if (*r->at == '\\') json_escape(r, out, &size);
        else json_letter(r, out, &size);
    }
    if (r->at >= r->end) json_wrong(r, "a string has no end");
    r->at++;
    out[size] = '\0';
    return realloc(out, size + 1);
}

static inline json_value json_any(json_reader *r);

static inline json_value json_group(json_reader *r, char kind, char close)
{
    json_value v = {.kind = kind};
    r->at++;
    for (json_blanks(r); r->at < r->end && *r->at != close; json_blanks(r)) {
        if (v.count > 0 && *r->at++ != ',') json_wrong(r, "a comma is missing");
        v.value = realloc(v.value, (v.count + 1) * sizeof *v.value);
        v.key = realloc(v.key, (v.count + 1) * sizeof *v.key);
        json_blanks(r);
        v.key[v.count] = kind == 'o' ? json_text(r) : NULL;
        json_blanks(r);
        if (kind == 'o' && *r->at++ != ':') json_wrong(r, "a colon is missing");
        v.value[v.count] = json_any(r);
        v.count++;
    }
    if (r->at >= r->end) json_wrong(r, "a bracket is not closed");
    r->at++;
    return v;
}

static inline json_value json_number(json_reader *r)
{
    const char *start = r->at;
    char *end;
    if (*r->at == '-') r->at++;
    if (r->at >= r->end || *r->at < '0' || *r->at > '9') json_wrong(r, "no value");
    if (r->at[0] == '0' && r->at[1] >= '0' && r->at[1] <= '9') json_wrong(r, "a number with a leading zero");
    const double value = strtod(start, &end);
    for (const char *c = start; c < end; c++)
        if (strchr("0123456789+-.eE", *c) == NULL) json_wrong(r, "a number that JSON does not know");
    r->at = end;
    return (json_value){.kind = 'n', .number = value};
}

static inline json_value json_any(json_reader *r)
{
    static const char *const words[] = {"true", "false", "null"};
    json_blanks(r);
    if (r->at >= r->end) json_wrong(r, "a value is missing");
    if (*r->at == '{') return json_group(r, 'o', '}');
    if (*r->at == '[') return json_group(r, 'a', ']');
    if (*r->at == '"') return (json_value){.kind = 's', .text = json_text(r)};
    for (size_t i = 0; i < 3; i++)
        if (strncmp(r->at, words[i], strlen(words[i])) == 0) {
            r->at += strlen(words[i]);
            return (json_value){.kind = "tf0"[i]};
        }
    return json_number(r);
}

/* All of text[0..size); the test fails where that is no JSON. */
static inline json_value json_read(const char *text, size_t size)
{
    json_reader r = {text, text + size};
    const json_value v = json_any(&r);
    json_blanks(&r);
    if (r.at != r.end) json_wrong(&r, "something follows the value");
    return v;
}

static inline void json_free(json_value *v)
{
    for (size_t i = 0; i < v->count; i++) {
        json_free(&v->value[i]);
        free(v->key[i]);
    }
    free(v->value);
    free(v->key);
    free(v->text);
}

/* The value of a key, or NULL. */
static inline const json_value *json_find(const json_value *v, const char *key)
{
    assert_int_equal(v->kind, 'o');
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->key[i], key) == 0) return &v->value[i];
    return NULL;
}
static inline const json_value *json_get(const json_value *v, const char *key)
{
    const json_value *found = json_find(v, key);
    if (found == NULL) fail_msg("there is no \"%s\"", key);
    return found;
}
static inline const json_value *json_item(const json_value *v, size_t index)
{
    assert_int_equal(v->kind, 'a');
    assert_true(index < v->count);
    return &v->value[index];
}

#endif
