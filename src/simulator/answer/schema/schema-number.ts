import type { Random } from "../random.ts";
import { numberOf, type JsonRecord } from "../../read-json.ts";

/** A number within the bounds of a schema; near the bound if it has only one. */
export function numberForSchema(schema: JsonRecord, isWhole: boolean, random: Random): number {
  const range = rangeOf(schema);
  const step = numberOf(schema["multipleOf"]) ?? (isWhole ? 1 : undefined);
  if (step === undefined) return decimalWithin(range, random);
  const multiple = isWhole && !Number.isInteger(step) ? 1 : step;
  let first = Math.ceil(range.lowest / multiple);
  let last = Math.floor(range.highest / multiple);
  if (range.excludesLowest && first * multiple <= range.lowest) first += 1;
  if (range.excludesHighest && last * multiple >= range.highest) last -= 1;
  const value = random.integer(first, Math.max(first, Math.min(last, first + 1000))) * multiple;
  // Rounds the error of binary fractions away, or the result would not be a multiple.
  return Number(value.toPrecision(15));
}

interface NumberRange {
  readonly lowest: number;
  readonly highest: number;
  readonly excludesLowest: boolean;
  readonly excludesHighest: boolean;
}

const usualSpan = 100;

function rangeOf(schema: JsonRecord): NumberRange {
  const minimum = numberOf(schema["minimum"]) ?? Number.NEGATIVE_INFINITY;
  const above = numberOf(schema["exclusiveMinimum"]) ?? Number.NEGATIVE_INFINITY;
  const maximum = numberOf(schema["maximum"]) ?? Number.POSITIVE_INFINITY;
  const below = numberOf(schema["exclusiveMaximum"]) ?? Number.POSITIVE_INFINITY;
  const lowest = Math.max(minimum, above);
  const highest = Math.min(maximum, below);
  const isOpen = lowest === Number.NEGATIVE_INFINITY;
  return {
    lowest: isOpen ? (highest === Infinity ? 1 : highest - usualSpan) : lowest,
    highest: highest === Infinity ? (isOpen ? usualSpan : lowest + usualSpan) : highest,
    excludesLowest: !isOpen && above >= minimum,
    excludesHighest: highest !== Infinity && below <= maximum,
  };
}

function decimalWithin(range: NumberRange, random: Random): number {
  const share = 0.1 + random.next() * 0.8;
  const exact = range.lowest + (range.highest - range.lowest) * share;
  const rounded = Math.round(exact * 100) / 100;
  return rounded > range.lowest && rounded < range.highest ? rounded : exact;
}
