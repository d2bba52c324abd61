import { apiKeyPattern } from "../../domain/keys/api-key.ts";

const deepestCause = 4;

/** Names, messages and top stack frames of an error and its causes, with secrets removed. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < deepestCause && current !== undefined; depth += 1) {
    parts.push(describeOne(current));
    current = current instanceof Error ? current.cause : undefined;
  }
  return redact(parts.join(" <- "));
}

export function redact(text: string): string {
  return text
    .replaceAll(new RegExp(apiKeyPattern, "g"), "[key]")
    .replaceAll(/\bslc-(?:mgt|local)_[0-9A-Za-z_]+/g, "[token]")
    .replaceAll(/\bBearer\s+[^\s"']+/gi, "Bearer [removed]");
}

function describeOne(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === "string" ? error : typeof error;
  const frame = error.stack?.split("\n").find((line) => line.trimStart().startsWith("at "));
  return `${error.name}: ${error.message}${frame === undefined ? "" : ` (${frame.trim()})`}`;
}
