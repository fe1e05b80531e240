/* The CRC-32 of zlib. Where the machine multiplies without carries it folds 64 bytes a step, which is several
 * times as fast as tables are; crc.py says who needs that.
 *
 * Folding: a block of the message may be replaced by its product with x^(8 * distance) modulo the polynomial,
 * added to the block that lies so much further. What is left at last are 16 bytes with the same remainder as
 * the whole, which go through the tables.
 */

#ifndef TANIST_CRC_H
#define TANIST_CRC_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define CAN_FOLD 1
#else
#define CAN_FOLD 0
#endif

#define FOLD_FROM_BYTES 64

static uint32_t crc_tables[8][256];
static int is_folding; /* whether the machine can */

static void make_crc_tables(void)
{
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t crc = n;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ 0xEDB88320u : crc >> 1;
        crc_tables[0][n] = crc;
    }
    for (int table = 1; table < 8; table++)
        for (int n = 0; n < 256; n++)
            crc_tables[table][n] =
                crc_tables[0][crc_tables[table - 1][n] & 0xFF] ^ (crc_tables[table - 1][n] >> 8);
#if CAN_FOLD
    __builtin_cpu_init();
    is_folding = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
}

/* The register behind these bytes, going on from the register before them. */
static uint32_t crc_by_tables(uint32_t crc, const uint8_t *p, size_t left)
{
    for (; left >= 8; left -= 8, p += 8) {
        uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        crc = crc_tables[7][low & 0xFF] ^ crc_tables[6][low >> 8 & 0xFF] ^ crc_tables[5][low >> 16 & 0xFF]
            ^ crc_tables[4][low >> 24] ^ crc_tables[3][p[4]] ^ crc_tables[2][p[5]] ^ crc_tables[1][p[6]]
            ^ crc_tables[0][p[7]];
    }
    while (left-- > 0)
        crc = crc_tables[0][(crc ^ *p++) & 0xFF] ^ (crc >> 8);
    return crc;
}

#if CAN_FOLD
#define FOLDS __attribute__((target("pclmul,sse4.1")))

FOLDS static inline __m128i load_block(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* A block moved over the distance that the factors are for, onto the block that lies there. */
FOLDS static inline __m128i fold_onto(__m128i block, __m128i factors, __m128i there)
{
    __m128i low = _mm_clmulepi64_si128(block, factors, 0x00);
    __m128i high = _mm_clmulepi64_si128(block, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), there);
}

/* The same as crc_by_tables, of at least FOLD_FROM_BYTES. */
FOLDS static uint32_t crc_by_folding(uint32_t crc, const uint8_t *p, size_t left)
{
    /* x^(512 + 32) and x^(512 - 32), x^(128 + 32) and x^(128 - 32), modulo the polynomial, bits reversed. */
    const __m128i over_64 = _mm_set_epi64x(0x1C6E41596, 0x154442BD4);
    const __m128i over_16 = _mm_set_epi64x(0x0CCAA009E, 0x1751997D0);
    __m128i first = _mm_xor_si128(load_block(p), _mm_cvtsi32_si128((int)crc));
    __m128i second = load_block(p + 16), third = load_block(p + 32), fourth = load_block(p + 48);
    for (p += 64, left -= 64; left >= 64; p += 64, left -= 64) {
        first = fold_onto(first, over_64, load_block(p));
        second = fold_onto(second, over_64, load_block(p + 16));
        third = fold_onto(third, over_64, load_block(p + 32));
        fourth = fold_onto(fourth, over_64, load_block(p + 48));
    }
    second = fold_onto(first, over_16, second);
    third = fold_onto(second, over_16, third);
    fourth = fold_onto(third, over_16, fourth);
    for (; left >= 16; p += 16, left -= 16)
        fourth = fold_onto(fourth, over_16, load_block(p));
    uint8_t rest[16];
    _mm_storeu_si128((__m128i *)(void *)rest, fourth);
    return crc_by_tables(crc_by_tables(0, rest, sizeof rest), p, left);
}
#endif

/* As zlib's crc32: ``crc`` is that of what lies before. */
static uint32_t crc32_on(uint32_t crc, const uint8_t *p, size_t size)
{
#if CAN_FOLD
    if (is_folding && size >= FOLD_FROM_BYTES)
        return ~crc_by_folding(~crc, p, size);
#endif
    return ~crc_by_tables(~crc, p, size);
}

#endif
