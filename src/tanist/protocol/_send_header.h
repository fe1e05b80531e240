/* Reads the JSON header of a send, SEND_MESSAGE_V2, as RocketMQ's Java clients write it:
 *
 *   {"code":310,"extFields":{"a":"group","b":"topic",...},"flag":0,"language":"JAVA","opaque":9,
 *    "serializeTypeCurrentRPC":"JSON","version":479}
 *
 * In this order, without blanks, in ASCII, every ext field a string, no field twice, numbers as short as
 * they can be. Whatever is otherwise, wrong or only unusual, is not for us: the careful readers of Python
 * have the last word. Every step looks at the end of the text first.
 */

#ifndef TANIST_SEND_HEADER_H
#define TANIST_SEND_HEADER_H

#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *data;
    Py_ssize_t size;
} View;

typedef struct {
    const uint8_t *at, *end;
} Text;

/* The ext fields have one letter each; these are their places in the alphabet. */
enum { TOPIC_FIELD = 1, QUEUE_ID_FIELD = 4, PROPERTIES_FIELD = 8, FIELD_COUNT = 14 };
/* Group, topic, default topic, its queues, queue, system flag, birth and flag must be there. */
#define NEEDED_FIELDS 0xFF

typedef struct {
    View fields[FIELD_COUNT]; /* As they stand between their quotes. */
    int64_t numbers[FIELD_COUNT];
    uint32_t seen, escaped; /* One bit for each field. */
    View language;
    int64_t flag, opaque, version;
} SendHeader;

static inline int take_literal(Text *text, const char *literal)
{
    size_t size = strlen(literal);
    if ((size_t)(text->end - text->at) < size || memcmp(text->at, literal, size) != 0)
        return 0;
    text->at += size;
    return 1;
}

/* A string of which the opening quote is taken already. Escapes are stepped over, and told of. */
static int take_string(Text *text, View *string, int *has_escapes)
{
    const uint8_t *at = text->at, *end = text->end;
    int is_escaped = 0;
    for (; at < end && *at != '"'; at++) {
        if (*at < 0x20 || *at >= 0x80)
            return 0;
        if (*at == '\\') {
            is_escaped = 1;
            if (++at == end)
                return 0;
        }
    }
    if (at >= end)
        return 0;
    *string = (View){text->at, at - text->at};
    *has_escapes = is_escaped;
    text->at = at + 1;
    return 1;
}

/* A whole number that is written as short as it can be. */
static int read_number(View digits, int64_t low, int64_t high, int64_t *value)
{
    int is_negative = digits.size > 0 && digits.data[0] == '-';
    Py_ssize_t first = is_negative, size = digits.size - is_negative;
    int64_t number = 0;
    if (size < 1 || size > 18 || (digits.data[first] == '0' && digits.size > 1))
        return 0;
    for (Py_ssize_t n = first; n < digits.size; n++) {
        if (digits.data[n] < '0' || digits.data[n] > '9')
            return 0;
        number = number * 10 + (digits.data[n] - '0');
    }
    *value = is_negative ? -number : number;
    return low <= *value && *value <= high;
}

static int take_int32(Text *text, int64_t *value)
{
    const uint8_t *start = text->at;
    while (text->at < text->end && (*text->at == '-' || (*text->at >= '0' && *text->at <= '9')))
        text->at++;
    View digits = {start, text->at - start};
    return read_number(digits, INT32_MIN, INT32_MAX, value);
}

static int read_flag(View text, int64_t *value)
{
    *value = text.size == 4 && memcmp(text.data, "true", 4) == 0;
    return *value || (text.size == 5 && memcmp(text.data, "false", 5) == 0);
}

static int check_field(SendHeader *header, int field)
{
    View text = header->fields[field];
    int64_t *value = &header->numbers[field];
    switch ('a' + field) {
    case 'd': case 'e': case 'f': case 'h': case 'j': case 'l':
        return read_number(text, INT32_MIN, INT32_MAX, value);
    case 'g':
        return read_number(text, INT64_MIN, INT64_MAX, value);
    case 'k': case 'm':
        return read_flag(text, value);
    default:
        return 1;
    }
}

/* Ext fields that change nothing: what Java's clients add to any request, and their signature, which is
 * nothing to a broker without access control. */
static int is_harmless(View name)
{
    static const char *const names[] = {
        "bname", "ns", "nsd", "oway", "AccessKey", "Signature", "SecurityToken", "OnsChannel",
    };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if ((size_t)name.size == strlen(names[n]) && memcmp(name.data, names[n], (size_t)name.size) == 0)
            return 1;
    return 0;
}

/* One ext field behind its opening quote. One that we do not know may mean anything: it is not for us. */
static int take_field(Text *text, SendHeader *header)
{
    View name, value;
    int is_escaped;
    if (!take_string(text, &name, &is_escaped) || is_escaped || !take_literal(text, ":\"")
        || !take_string(text, &value, &is_escaped))
        return 0;
    int field = name.size == 1 ? name.data[0] - 'a' : -1;
    if (field < 0 || field >= FIELD_COUNT)
        return !is_escaped && is_harmless(name);
    if (header->seen & 1u << field)
        return 0;
    header->seen |= 1u << field;
    header->fields[field] = value;
    if (is_escaped)
        header->escaped |= 1u << field;
    return check_field(header, field);
}

/* 1: read, 0: not for us. Of the fields only the properties may have escapes, which are not looked at here. */
static inline int read_send_header(View view, SendHeader *header)
{
    Text text = {view.data, view.data + view.size};
    View unused;
    int is_escaped;
    memset(header, 0, sizeof *header);
    if (!take_literal(&text, "{\"code\":310,\"extFields\":{\""))
        return 0;
    do {
        if (!take_field(&text, header))
            return 0;
    } while (take_literal(&text, ",\""));
    return take_literal(&text, "},\"flag\":") && take_int32(&text, &header->flag)
        && take_literal(&text, ",\"language\":\"") && take_string(&text, &header->language, &is_escaped) && !is_escaped
        && take_literal(&text, ",\"opaque\":") && take_int32(&text, &header->opaque)
        && take_literal(&text, ",\"serializeTypeCurrentRPC\":\"") && take_string(&text, &unused, &is_escaped)
        && !is_escaped && take_literal(&text, ",\"version\":") && take_int32(&text, &header->version)
        && take_literal(&text, "}") && text.at == text.end
        && (header->seen & NEEDED_FIELDS) == NEEDED_FIELDS && (header->escaped & ~(1u << PROPERTIES_FIELD)) == 0;
}

static int hex_digit(uint8_t digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* The character of \uXXXX, or 0 if it is not in ASCII (or no escape at all). */
static uint8_t escaped_code(const uint8_t *at, const uint8_t *end)
{
    if (end - at < 4 || at[0] != '0' || at[1] != '0')
        return 0;
    int high = hex_digit(at[2]), low = hex_digit(at[3]);
    return high >= 0 && high < 8 && low >= 0 ? (uint8_t)(high << 4 | low) : 0;
}

/* Write a string without its escapes to where there is room for it as it is. How long it is, -1: not for us. */
static inline Py_ssize_t unescape(View string, uint8_t *to)
{
    static const char names[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    uint8_t *start = to;
    const uint8_t *end = string.data + string.size;
    for (const uint8_t *at = string.data; at < end; at++) {
        if (*at != '\\') {
            *to++ = *at;
            continue;
        }
        const char *name = ++at < end ? memchr(names, *at, sizeof names - 1) : NULL;
        uint8_t code = name != NULL ? (uint8_t)codes[name - names] : 0;
        int is_number = at < end && *at == 'u';
        if (is_number)
            code = escaped_code(at + 1, end);
        if (code == 0)
            return -1;
        if (is_number)
            at += 4;
        *to++ = code;
    }
    return to - start;
}

#endif
