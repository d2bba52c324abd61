import { expect, test } from "bun:test";
import { decimalUnits, microOfUsd, nanoOfUsd, usdOfMicro, usdOfNano } from "./usd.ts";

test("reads decimal texts digit by digit", () => {
  expect(nanoOfUsd("12.40")).toBe(12_400_000_000);
  expect(nanoOfUsd("0.000000001")).toBe(1);
  expect(nanoOfUsd("9000000")).toBe(9_000_000_000_000_000);
  expect(microOfUsd("0.035")).toBe(35_000);
  // As a float it would be 2.8999999999999996 times a power of ten.
  expect(microOfUsd("0.29")).toBe(290_000);
});

test("refuses what is no amount, too precise or too large", () => {
  for (const text of ["", ".5", "5.", "-1", "+1", "1,5", "1_000", " 1", "0x10", "NaN", "1e", "١"]) {
    expect([text, nanoOfUsd(text)]).toEqual([text, undefined]);
  }
  expect(nanoOfUsd("0.0000000001")).toBeUndefined();
  expect(microOfUsd("0.0000001")).toBeUndefined();
  expect(nanoOfUsd("9007200")).toBeUndefined();
  expect(nanoOfUsd("1e99")).toBeUndefined();
  expect(nanoOfUsd("0".repeat(41))).toBeUndefined();
});

test("reads exponents as lists of prices have them, and says what was rounded", () => {
  // USD per token as micro-USD per million tokens.
  expect(decimalUnits("2.5e-06", 12)).toEqual({ units: 2_500_000, isExact: true });
  expect(decimalUnits("3.75E-7", 12)).toEqual({ units: 375_000, isExact: true });
  expect(decimalUnits("1.0000000000000002e-06", 12)).toEqual({ units: 1_000_000, isExact: false });
  expect(decimalUnits("5e-13", 12)).toEqual({ units: 1, isExact: false });
  expect(decimalUnits("4e-13", 12)).toEqual({ units: 0, isExact: false });
});

test("writes all nine digits of nano-USD, and prices without zeros at their end", () => {
  expect(usdOfNano(12_400_000)).toBe("0.012400000");
  expect(usdOfNano(0)).toBe("0.000000000");
  expect(usdOfNano(-1)).toBe("-0.000000001");
  expect(usdOfNano(123_456_789_012_345_678_901n)).toBe("123456789012.345678901");
  expect(usdOfMicro(35_000)).toBe("0.035");
  expect(usdOfMicro(3_000_000)).toBe("3");
  expect(usdOfMicro(10_000_000)).toBe("10");
  expect(usdOfMicro(0)).toBe("0");
});

test("what is written is read as the same amount", () => {
  for (let nano = 1; nano < Number.MAX_SAFE_INTEGER; nano = nano * 7 + 3) {
    expect(nanoOfUsd(usdOfNano(nano))).toBe(nano);
    expect(microOfUsd(usdOfMicro(nano))).toBe(nano);
  }
});
