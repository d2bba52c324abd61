/**
 * Names of a request's documents. The provider accepts letters, digits, single white space,
 * hyphens, parentheses and brackets, at most 200 characters, and no name twice.
 */
export class DocumentNames {
  readonly #used = new Set<string>();
  /** The last number added to a repeated name: callers may repeat one name very often. */
  readonly #counts = new Map<string, number>();

  /** The name under which the model sees a file. Its extension is the document's format. */
  nameFor(filename: string): string {
    const readable = sanitize(filename.slice(0, 1_000)) || "document";
    let count = this.#counts.get(readable) ?? 1;
    let name = readable;
    while (this.#used.has(name)) {
      count += 1;
      name = `${readable} (${count})`;
    }
    this.#counts.set(readable, count);
    this.#used.add(name);
    return name;
  }
}

/** Leaves room for a number. */
const keptLength = 190;

function sanitize(filename: string): string {
  return filename
    .replace(/\.[a-zA-Z0-9]{1,8}$/, "")
    .replaceAll(/[^a-zA-Z0-9\s()[\]-]/g, "-")
    .replaceAll(/\s+/g, " ")
    .trim()
    .slice(0, keptLength)
    .trimEnd();
}
