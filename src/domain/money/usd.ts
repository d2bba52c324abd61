/** Amounts of money beyond it are refused: sums of them would leave the safe integers. */
export const mostUsd = 9_000_000;

const nanoDigits = 9;
const microDigits = 6;

/** Nano-USD of a decimal text such as `12.40`; undefined: not one, or more precise, or too much. */
export function nanoOfUsd(text: string): number | undefined {
  return exactly(decimalUnits(text, nanoDigits));
}

/** Micro-USD of a decimal text such as `0.035`; undefined as above. */
export function microOfUsd(text: string): number | undefined {
  return exactly(decimalUnits(text, microDigits));
}

/** `0.012400000`, of a number of nano-USD or of a sum of them; negative for corrections. */
export function usdOfNano(nano: number | bigint): string {
  return decimalText(nano, nanoDigits);
}

/** `0.035`, of micro-USD, without zeros at its end. */
export function usdOfMicro(micro: number): string {
  return decimalText(micro, microDigits).replace(/\.?0+$/, "");
}

/** How many units of so many digits after the point a decimal text is, rounded half up. */
export interface DecimalUnits {
  readonly units: number;
  readonly isExact: boolean;
}

const longestText = 40;
const mostExponent = 30;

/**
 * Reads `3`, `0.25` or `2.5e-06` digit by digit, never as a float. Undefined for anything else, and
 * for more than the safe integers hold.
 */
export function decimalUnits(text: string, digits: number): DecimalUnits | undefined {
  if (text.length > longestText) return undefined;
  const parts = /^([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,2}))?$/.exec(text);
  if (parts === null) return undefined;
  const [, whole = "", fraction = "", exponent = "0"] = parts;
  const shift = digits + Number(exponent) - fraction.length;
  if (Math.abs(shift) > mostExponent + longestText) return undefined;
  const all = BigInt(whole + fraction);
  const power = 10n ** BigInt(Math.abs(shift));
  const units = shift >= 0 ? all * power : (all + power / 2n) / power;
  if (units > BigInt(Number.MAX_SAFE_INTEGER)) return undefined;
  return { units: Number(units), isExact: shift >= 0 || all % power === 0n };
}

function exactly(read: DecimalUnits | undefined): number | undefined {
  return read?.isExact === true ? read.units : undefined;
}

function decimalText(amount: number | bigint, digits: number): string {
  const text = String(amount);
  const sign = text.startsWith("-") ? "-" : "";
  const padded = text.slice(sign.length).padStart(digits + 1, "0");
  return `${sign}${padded.slice(0, -digits)}.${padded.slice(-digits)}`;
}
