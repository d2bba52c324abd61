import { type ErrorCode, stringify } from "yaml";
import type { JsonObject } from "../../domain/json-object.ts";

/** The parser's own texts may quote the file, which may contain secrets. */
export function describeSyntaxError(code: ErrorCode): string {
  switch (code) {
    case "DUPLICATE_KEY":
      return "duplicate key";
    case "TAB_AS_INDENT":
      return "a tab indents the line; use spaces";
    case "MULTIPLE_DOCS":
      return "a second document begins; the file must have one";
    case "BAD_INDENT":
      return "the indentation does not fit the lines above, or a bracket is not closed";
    case "BLOCK_AS_IMPLICIT_KEY":
      return "the value has a second ': ' (put it in quotes), or the next line is indented too much";
    case "MULTILINE_IMPLICIT_KEY":
      return "a key needs a colon and a space after it: write `key: value`";
    case "BAD_SCALAR_START":
      return "the value begins with a character that YAML reserves; put it in quotes";
    case "BAD_DQ_ESCAPE":
      return "the text in double quotes has an unknown escape; use single quotes";
    case "MISSING_CHAR":
      return "a quote, bracket, comma or colon is missing, here or above";
    case "BLOCK_IN_FLOW":
      return "a comma is missing in brackets, or text with ': ' needs quotes";
    case "BAD_ALIAS":
    case "ALIAS_PROPS":
    case "MULTIPLE_ANCHORS":
      return "text that begins with * or & needs quotes (else it is an alias or an anchor)";
    case "TAG_RESOLVE_FAILED":
    case "MULTIPLE_TAGS":
    case "BAD_COLLECTION_TYPE":
      return "tags such as !name are not supported";
    case "NON_STRING_KEY":
      return "a key must be text";
    case "BAD_DIRECTIVE":
      return "directives other than %YAML 1.2 are not supported";
    case "KEY_OVER_1024_CHARS":
      return "a key is too long";
    case "RESOURCE_EXHAUSTION":
      return "nests too deeply";
    case "BAD_PROP_ORDER":
    case "IMPOSSIBLE":
    case "UNEXPECTED_TOKEN":
      return "is not valid YAML here; text with special characters needs quotes";
    default: {
      const unknown: never = code;
      return `is not valid YAML here${String(unknown)}`;
    }
  }
}

/** A map as YAML, with each comment as a line above it. */
export function writeYaml(value: JsonObject, comments: readonly string[]): string {
  const lines = comments.map((comment) => `# ${comment.replaceAll(/\s+/g, " ")}`);
  return [...lines, stringify(value, { lineWidth: 0 })].join("\n");
}
