import { type ErrorCode, stringify } from "yaml";
import type { JsonObject } from "../../domain/json-object.ts";

const alias = "text that begins with * or & needs quotes (else it is an alias or an anchor)";
const tag = "tags such as !name are not supported";
const invalid = "is not valid YAML here; text with special characters needs quotes";

/** The parser's own texts may quote the file, which may contain secrets. */
export const syntaxErrors: Readonly<Record<ErrorCode, string>> = {
  DUPLICATE_KEY: "duplicate key",
  TAB_AS_INDENT: "a tab indents the line; use spaces",
  MULTIPLE_DOCS: "a second document begins; the file must have one",
  BAD_INDENT: "the indentation does not fit the lines above, or a bracket is not closed",
  BLOCK_AS_IMPLICIT_KEY:
    "the value has a second ': ' (put it in quotes), or the next line is indented too much",
  MULTILINE_IMPLICIT_KEY: "a key needs a colon and a space after it: write `key: value`",
  BAD_SCALAR_START: "the value begins with a character that YAML reserves; put it in quotes",
  BAD_DQ_ESCAPE: "the text in double quotes has an unknown escape; use single quotes",
  MISSING_CHAR: "a quote, bracket, comma or colon is missing, here or above",
  BLOCK_IN_FLOW: "a comma is missing in brackets, or text with ': ' needs quotes",
  BAD_ALIAS: alias,
  ALIAS_PROPS: alias,
  MULTIPLE_ANCHORS: alias,
  TAG_RESOLVE_FAILED: tag,
  MULTIPLE_TAGS: tag,
  BAD_COLLECTION_TYPE: tag,
  NON_STRING_KEY: "a key must be text",
  BAD_DIRECTIVE: "directives other than %YAML 1.2 are not supported",
  KEY_OVER_1024_CHARS: "a key is too long",
  RESOURCE_EXHAUSTION: "nests too deeply",
  BAD_PROP_ORDER: invalid,
  IMPOSSIBLE: invalid,
  UNEXPECTED_TOKEN: invalid,
};

/** A map as YAML, with each comment as a line above it. */
export function writeYaml(value: JsonObject, comments: readonly string[]): string {
  const lines = comments.map((comment) => `# ${comment.replaceAll(/\s+/g, " ")}`);
  return [...lines, stringify(value, { lineWidth: 0 })].join("\n");
}
