/**
 * PostgreSQL takes no NUL in a text: U+FFFD is stored in its place. What is looked up with a NUL is
 * not found, as nothing there has one.
 */
export function withoutNul(value: unknown): unknown {
  return typeof value === "string" && value.includes("\0")
    ? value.replaceAll("\0", "\uFFFD")
    : value;
}
