import { describe, expect, test } from "bun:test";
import { expandPlaceholders, hidePlaceholders } from "./interpolate.ts";

const environment = { NAME: "value", EMPTY: "", NESTED: "${NAME}", _1: "one" };

describe("expandPlaceholders", () => {
  test.each([
    ["no placeholder, $NAME and $ stay", "no placeholder, $NAME and $ stay"],
    ["${NAME}", "value"],
    ["a-${NAME}-${_1}", "a-value-one"],
    ["${UNSET:-fallback}", "fallback"],
    ["${EMPTY:-fallback}", "fallback"],
    ["${EMPTY}", ""],
    ["${UNSET:-}", ""],
    ["${UNSET:-a:-b c}", "a:-b c"],
    ["${NAME:-fallback}", "value"],
    ["$${NAME}", "${NAME}"],
    ["$${${NAME}", "${value"],
    ["${NESTED}", "${NAME}"],
  ])("turns %s into %s", (text, expanded) => {
    expect(expandPlaceholders(text, environment)).toEqual({ text: expanded, problems: [] });
  });

  test("names the variable that is not set", () => {
    expect(expandPlaceholders("${UNSET}", environment).problems).toEqual([
      "environment variable UNSET is not set",
    ]);
  });

  test.each(["${", "${}", "${1A}", "${NAME", "${a b}", "${NAME:fallback}", "${sk-secret}"])(
    "refuses %s without quoting it",
    (text) => {
      const [problem, ...others] = expandPlaceholders(text, environment).problems;
      expect(problem).toContain("malformed placeholder");
      expect(problem).not.toContain("secret");
      expect(others).toEqual([]);
    },
  );

  test("ignores properties that the environment inherits", () => {
    expect(expandPlaceholders("${toString}", environment).problems).toHaveLength(1);
  });
});

describe("hidePlaceholders", () => {
  test("keeps the length of the text and can be undone", () => {
    const text = "a: { b: ${B:-x}, c: $${C} } # ${D} {${E}}";
    const hidden = hidePlaceholders(text);
    expect(hidden.text).toHaveLength(text.length);
    expect(hidden.text).not.toContain("${");
    expect(hidden.restore(hidden.text)).toBe(text);
  });
});
