import { isObject, type JsonObject } from "../../domain/json-object.ts";
import { CommandError } from "../command.ts";

/** An object of an answer. Unknown fields of a newer gateway are ignored. */
export type ReplyRecord = JsonObject;

export function readRecord(value: unknown): ReplyRecord {
  if (isObject(value)) return value;
  throw new CommandError("the control plane's response is not an object");
}

/** The objects in a field of an answer, such as `data`. */
export function readRecords(value: unknown, name: string): readonly ReplyRecord[] {
  const list = readRecord(value)[name];
  if (Array.isArray(list)) return list.map(readRecord);
  throw new CommandError(`the control plane's response has no list '${name}'`);
}

export function readText(record: ReplyRecord, name: string): string {
  const value = record[name];
  if (typeof value === "string") return value;
  throw new CommandError(`the control plane's response has no text '${name}'`);
}

/** An object in a field; undefined when it is null or absent. */
export function readPart(record: ReplyRecord, name: string): ReplyRecord | undefined {
  const value = record[name];
  return isObject(value) ? value : undefined;
}

/** A field as a cell of a table; dots lead into objects. */
export function cellOf(record: ReplyRecord, name: string): string | number {
  const value = name
    .split(".")
    .reduce<unknown>((part, key) => (isObject(part) ? part[key] : undefined), record);
  return formatValue(value);
}

export function formatValue(value: unknown): string | number {
  // People need only the first digits of milliseconds.
  if (typeof value === "number") return Number(value.toFixed(Math.abs(value) < 10 ? 1 : 0));
  if (typeof value === "string") return formatText(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.length === 0 ? "-" : value.map(formatValue).join(",");
  return value === null || value === undefined ? "-" : printable(JSON.stringify(value));
}

function formatText(value: string): string {
  const [, date, time] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/.exec(value) ?? [];
  if (date !== undefined && time !== undefined) return `${date} ${time}`;
  return value === "" ? "-" : printable(value);
}

/** Replaces control characters, because notes and names are untrusted. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\ufffd");
}
