import type { AnswerHeaders } from "../adapter.ts";

const secretPatterns: readonly RegExp[] = [
  /\b(?:sk|pk|rk)[-_][A-Za-z0-9_*-]{6,}/g,
  // Field names such as `key_points` begin in the same way, but have no digits and capitals.
  /\b(?:key|org|proj)[-_](?=[a-z_-]*[A-Z0-9*])[A-Za-z0-9_*-]{6,}/g,
  // AWS: ids of access keys and of principals, session tokens, secret access keys.
  /\bA(?:BIA|CCA|GPA|IDA|IPA|KIA|NPA|NVA|PKA|ROA|SCA|SIA)[A-Z0-9]{12,}/g,
  /\b(?:IQoJ|FwoG|FQoG)[\w+/=-]{16,}/g,
  /(?<![\w+/=-])(?=\S*[A-Z])(?=\S*[a-z])(?=\S*\d)[A-Za-z0-9+/]{40}(?![\w+/=-])/g,
  /\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?/g,
  /\bBearer\s+\S+/gi,
  /\barn:[^\s'"]+/g,
  /\bhttps?:\/\/[^\s'")]+/g,
  /\b\d{12}\b/g,
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g,
];

const longestMessage = 1_000;

/** A provider's name or id of something, if it looks like one: such words quote no caller. */
export function cleanCode(code: unknown): string | undefined {
  return typeof code === "string" && /^[A-Za-z0-9_.-]{1,100}$/.test(code) ? code : undefined;
}

/**
 * An upstream's message, fit for a caller: of bounded length, and without keys, account
 * identifiers and links, which would reveal the operator's accounts.
 */
export function cleanMessage(message: string): string {
  let clean = message.slice(0, longestMessage * 2);
  for (const pattern of secretPatterns) clean = clean.replace(pattern, "[removed]");
  return clean.length > longestMessage ? `${clean.slice(0, longestMessage)}...` : clean;
}

/** Messages with one of these texts, in any case. `<count>` may have separators of thousands. */
export function anyOf(texts: readonly string[]): RegExp {
  return new RegExp(texts.join("|").replaceAll("<count>", "\\d[\\d,._]*"), "i");
}

/** The wait in milliseconds from `retry-after-ms` or `retry-after` (seconds, or an HTTP date). */
export function readRetryAfter(headers: AnswerHeaders, nowMs: number): number | undefined {
  const precise = Number(headers.get("retry-after-ms") ?? Number.NaN);
  if (precise >= 0) return precise;
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const seconds = Number(value);
  if (seconds >= 0) return seconds * 1_000;
  const waitMs = Date.parse(value) - nowMs;
  return waitMs >= 0 ? waitMs : undefined;
}

/** In place of a message. `answer`: what stands for it; by default its status. */
export function wordless(
  status: number | undefined,
  answer = status === undefined ? "an error" : `status ${status}`,
): string {
  return `the model's upstream answered ${cleanMessage(answer)} and gave no reason`;
}
