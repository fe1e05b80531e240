/* Many records in one call: steps over them, their numbers, checksums of their bodies, values of their properties.
 *
 * decoding.py and properties.py say what and why, and do the same in Python where this could not be built.
 * All places are counted in bytes from the start of a buffer. Every one is checked before anything is read.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "../protocol/_crc.h"

#define MAGIC_V1 0xDAA320A7u
#define MAGIC_V2 0xDAA320ABu
#define MAGIC_BLANK 0xCBD43194u
#define BLANK_BYTES 8
#define MIN_RECORD_BYTES 91
#define CRC_MASK 0x7FFFFFFFu
#define NAME_END 1
#define VALUE_END 2
#define MOST_NAMES 8
#define ROWS_AHEAD 8
#define LINES_AHEAD 4
#define CACHE_LINE 64

/* Why a walk ended; decoding.Stop has them in this order, from 1 on. */
enum { STOP_LIMIT = 1, STOP_CUT, STOP_BLANK, STOP_NO_RECORD };

static uint32_t get32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* walk(raw, position, limit): (the starts as int64, where it ended, why) */
static PyObject *walk(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer raw;
    Py_ssize_t position, limit;
    if (!PyArg_ParseTuple(arguments, "y*nn", &raw, &position, &limit))
        return NULL;
    const uint8_t *bytes = raw.buf;
    Py_ssize_t end = raw.len, count = 0, room = position < 0 ? 0 : end / MIN_RECORD_BYTES + 1;
    Py_ssize_t last_head = limit < end - BLANK_BYTES + 1 ? limit : end - BLANK_BYTES + 1;
    int stop = STOP_LIMIT;
    PyObject *starts = PyBytes_FromStringAndSize(NULL, room * (Py_ssize_t)sizeof(int64_t));
    if (starts == NULL) {
        PyBuffer_Release(&raw);
        return NULL;
    }
    int64_t *to = (int64_t *)PyBytes_AS_STRING(starts);
    while (position >= 0 && position < last_head) {
        int32_t size = (int32_t)get32(bytes + position);
        uint32_t magic = get32(bytes + position + 4);
        if (size < MIN_RECORD_BYTES || (magic != MAGIC_V1 && magic != MAGIC_V2)) {
            stop = magic == MAGIC_BLANK && size >= BLANK_BYTES ? STOP_BLANK : STOP_NO_RECORD;
            break;
        }
        if (size > end - position) {
            stop = STOP_CUT;
            break;
        }
        to[count++] = position;
        position += size;
    }
    if (stop == STOP_LIMIT && position < limit)
        stop = STOP_CUT;
    PyBuffer_Release(&raw);
    if (_PyBytes_Resize(&starts, count * (Py_ssize_t)sizeof(int64_t)) < 0)
        return NULL;
    return Py_BuildValue("Nni", starts, position, stop);
}

/* Copies big-endian numbers into the machine's order; width is a constant wherever this is called. */
static inline void get_numbers(const uint8_t *bytes, const int64_t *place, Py_ssize_t count, int width, uint8_t *to)
{
    for (Py_ssize_t row = 0; row < count; row++, to += width) {
        const uint8_t *from = bytes + place[row];
        uint64_t value = 0;
        for (int n = 0; n < width; n++)
            value = value << 8 | from[n];
        if (width == 2)
            *(uint16_t *)to = (uint16_t)value;
        else if (width == 4)
            *(uint32_t *)to = (uint32_t)value;
        else
            *(uint64_t *)to = value;
    }
}

/* numbers(raw, places, width): the numbers of 2, 4 or 8 bytes that stand there, in the machine's order */
static PyObject *numbers(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer raw, places;
    int width;
    if (!PyArg_ParseTuple(arguments, "y*y*i", &raw, &places, &width))
        return NULL;
    const int64_t *place = places.buf;
    Py_ssize_t count = places.len / (Py_ssize_t)sizeof(int64_t);
    PyObject *found = NULL;
    int is_sound = width == 2 || width == 4 || width == 8;
    for (Py_ssize_t row = 0; is_sound && row < count; row++)
        is_sound = 0 <= place[row] && place[row] <= raw.len - width;
    if (!is_sound) {
        PyErr_SetString(PyExc_IndexError, "a number does not lie in the buffer");
        goto done;
    }
    found = PyBytes_FromStringAndSize(NULL, count * width);
    if (found == NULL)
        goto done;
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(found);
    if (width == 2)
        get_numbers(raw.buf, place, count, 2, to);
    else if (width == 4)
        get_numbers(raw.buf, place, count, 4, to);
    else
        get_numbers(raw.buf, place, count, 8, to);
done:
    PyBuffer_Release(&raw);
    PyBuffer_Release(&places);
    return found;
}

/* Two columns of places in a buffer; released as one. */
typedef struct {
    Py_buffer raw, starts, ends;
    const uint8_t *bytes;
    const int64_t *start, *end;
    Py_ssize_t count;
} Pieces;

static void release(Pieces *pieces)
{
    PyBuffer_Release(&pieces->raw);
    PyBuffer_Release(&pieces->starts);
    PyBuffer_Release(&pieces->ends);
}

/* Whether all pieces lie in the buffer; if not they are released, and a ValueError says so. */
static int check(Pieces *pieces)
{
    pieces->bytes = pieces->raw.buf;
    pieces->start = pieces->starts.buf;
    pieces->end = pieces->ends.buf;
    pieces->count = pieces->starts.len / (Py_ssize_t)sizeof(int64_t);
    int is_sound = pieces->starts.len == pieces->ends.len;
    for (Py_ssize_t row = 0; is_sound && row < pieces->count; row++)
        is_sound = 0 <= pieces->start[row] && pieces->start[row] <= pieces->end[row] && pieces->end[row] <= pieces->raw.len;
    if (!is_sound) {
        release(pieces);
        PyErr_SetString(PyExc_ValueError, "a piece does not lie in the buffer");
    }
    return is_sound;
}

/* body_checksums(raw, starts, ends): a uint32 each, or None where this machine is no faster than zlib */
static PyObject *body_checksums(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    if (!is_folding)
        Py_RETURN_NONE;
    Pieces pieces;
    if (!PyArg_ParseTuple(arguments, "y*y*y*", &pieces.raw, &pieces.starts, &pieces.ends) || !check(&pieces))
        return NULL;
    PyObject *found = PyBytes_FromStringAndSize(NULL, pieces.count * (Py_ssize_t)sizeof(uint32_t));
    if (found != NULL) {
        uint32_t *to = (uint32_t *)PyBytes_AS_STRING(found);
        for (Py_ssize_t row = 0; row < pieces.count; row++) {
            const uint8_t *body = pieces.bytes + pieces.start[row];
            to[row] = crc32_on(0, body, (size_t)(pieces.end[row] - pieces.start[row])) & CRC_MASK;
        }
    }
    release(&pieces);
    return found;
}

/* Names that are looked for, and where the values of each go: all starts, then all ends. */
typedef struct {
    const char *name;
    Py_ssize_t size;
    int64_t *starts, *ends;
} Sought;

/* The later of two equal names counts; a segment without a name or a value does not. */
static void find_in(const uint8_t *bytes, int64_t start, int64_t end, Sought *sought, Py_ssize_t name_count, Py_ssize_t row)
{
    while (start < end) {
        const uint8_t *close = memchr(bytes + start, VALUE_END, (size_t)(end - start));
        int64_t stop = close == NULL ? end : close - bytes;
        const uint8_t *mark = memchr(bytes + start, NAME_END, (size_t)(stop - start));
        int64_t name_end = mark == NULL ? stop : mark - bytes;
        for (Py_ssize_t n = 0; name_end > start && name_end + 1 < stop && n < name_count; n++) {
            if (name_end - start != sought[n].size || memcmp(bytes + start, sought[n].name, (size_t)sought[n].size) != 0)
                continue;
            sought[n].starts[row] = name_end + 1;
            sought[n].ends[row] = stop;
        }
        start = stop + 1;
    }
}

/* property_values(raw, starts, ends, names): for each name the starts and the ends of its values as int64, -1 for none */
static PyObject *property_values(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Pieces pieces;
    PyObject *names;
    if (!PyArg_ParseTuple(arguments, "y*y*y*O!", &pieces.raw, &pieces.starts, &pieces.ends, &PyTuple_Type, &names)
        || !check(&pieces))
        return NULL;
    Sought sought[MOST_NAMES];
    Py_ssize_t name_count = PyTuple_GET_SIZE(names);
    PyObject *found = NULL;
    if (name_count > MOST_NAMES) {
        PyErr_SetString(PyExc_ValueError, "too many names");
        goto done;
    }
    Py_ssize_t size = 2 * name_count * pieces.count * (Py_ssize_t)sizeof(int64_t);
    found = PyBytes_FromStringAndSize(NULL, size);
    if (found == NULL)
        goto done;
    int64_t *to = (int64_t *)PyBytes_AS_STRING(found);
    memset(to, 0xFF, (size_t)size);
    for (Py_ssize_t n = 0; n < name_count; n++, to += 2 * pieces.count) {
        char *name;
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(names, n), &name, &sought[n].size) < 0) {
            Py_CLEAR(found);
            goto done;
        }
        sought[n].name = name;
        sought[n].starts = to;
        sought[n].ends = to + pieces.count;
    }
    for (Py_ssize_t row = 0; row < pieces.count; row++) {
        /* Strings lie a body apart, so memory is slower than the search: those to come are asked for early. */
        Py_ssize_t coming = row + ROWS_AHEAD < pieces.count ? row + ROWS_AHEAD : row;
        for (int line = 0; line < LINES_AHEAD && pieces.start[coming] + line * CACHE_LINE < pieces.end[coming]; line++)
            __builtin_prefetch(pieces.bytes + pieces.start[coming] + line * CACHE_LINE);
        find_in(pieces.bytes, pieces.start[row], pieces.end[row], sought, name_count, row);
    }
done:
    release(&pieces);
    return found;
}

static PyMethodDef methods[] = {
    {"walk", walk, METH_VARARGS, "Steps from record to record."},
    {"numbers", numbers, METH_VARARGS, "Numbers that stand at many places."},
    {"body_checksums", body_checksums, METH_VARARGS, "Checksums of many bodies, or None."},
    {"property_values", property_values, METH_VARARGS, "Where the values of some properties lie."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native", "The fast twin of what Python does with many records.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    make_crc_tables();
    return PyModule_Create(&module);
}
