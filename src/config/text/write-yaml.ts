import { stringify } from "yaml";
import type { JsonObject } from "../../domain/json-object.ts";

/** A map as YAML, with each comment as a line above it. */
export function writeYaml(value: JsonObject, comments: readonly string[]): string {
  const lines = comments.map((comment) => `# ${comment.replaceAll(/\s+/g, " ")}`);
  return [...lines, stringify(value, { lineWidth: 0 })].join("\n");
}
