import { isObject } from "../../domain/json-object.ts";
import { wrongType, type Check } from "./checks.ts";
import * as messages from "./messages.ts";
import { Violation } from "./violation.ts";

export interface MapRules {
  readonly value: Check;
  readonly key?: (key: string) => Violation | undefined;
  readonly maximumEntries?: number;
}

/** An object with free keys. A violation of a key is reported for the whole map. */
export function map(rules: MapRules): Check {
  const { value: checkValue, key: checkKey, maximumEntries = Infinity } = rules;
  return (value) => {
    if (!isObject(value)) return wrongType("an object", value);
    const keys = Object.keys(value);
    if (keys.length > maximumEntries) {
      return new Violation("object_above_max_properties", {
        message: (path) => messages.tooManyProperties(path, maximumEntries, keys.length),
      });
    }
    for (const key of keys) {
      const keyViolation = checkKey?.(key);
      if (keyViolation !== undefined) return keyViolation;
      const violation = checkValue(value[key]);
      if (violation !== undefined) return violation.insideField(messages.clip(key));
    }
    return undefined;
  };
}

export function keyAtMost(maximumLength: number): (key: string) => Violation | undefined {
  return (key) =>
    key.length <= maximumLength
      ? undefined
      : new Violation("string_above_max_length", {
          message: (path) => messages.keyTooLong(path, { key, maximum: maximumLength }),
        });
}

const tokenIdPattern = /^\d+$/;

export function tokenIdKey(key: string): Violation | undefined {
  return tokenIdPattern.test(key)
    ? undefined
    : new Violation("invalid_value", { message: (path) => messages.keyNotTokenId(path, key) });
}
