/**
 * A constraint of a JSON schema in words, for a model that does not enforce it. Source of the
 * keywords: JSON Schema 2020-12, "Validation".
 */
export function constraintWords(keyword: string, value: unknown): string {
  const count = typeof value === "number" ? numberWords[keyword] : undefined;
  if (count !== undefined) return count(String(value));
  if (typeof value === "string") {
    if (keyword === "pattern") return `matches the regular expression ${value}`;
    if (keyword === "format") return `in the format ${value}`;
  }
  if (keyword === "uniqueItems" && value === true) return "no two items alike";
  if (keyword === "oneOf") return "fits exactly one of the alternatives";
  return `fits the JSON schema ${JSON.stringify({ [keyword]: value })}`;
}

/** A description with constraints after it. */
export function withWords(description: string | undefined, words: readonly string[]): string {
  const joined = words.join("; ");
  if (description === undefined || description.trim() === "") {
    return joined.charAt(0).toUpperCase() + joined.slice(1);
  }
  return `${description} (${joined})`;
}

const numberWords: Readonly<Record<string, ((number: string) => string) | undefined>> = {
  minimum: (number) => `at least ${number}`,
  maximum: (number) => `at most ${number}`,
  exclusiveMinimum: (number) => `greater than ${number}`,
  exclusiveMaximum: (number) => `less than ${number}`,
  multipleOf: (number) => `a multiple of ${number}`,
  minLength: (number) => `at least ${counted(number, "character", "characters")}`,
  maxLength: (number) => `at most ${counted(number, "character", "characters")}`,
  minItems: (number) => `at least ${counted(number, "item", "items")}`,
  maxItems: (number) => `at most ${counted(number, "item", "items")}`,
  minProperties: (number) => `at least ${counted(number, "property", "properties")}`,
  maxProperties: (number) => `at most ${counted(number, "property", "properties")}`,
};

function counted(number: string, one: string, many: string): string {
  return `${number} ${number === "1" ? one : many}`;
}
