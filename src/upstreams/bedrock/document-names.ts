/**
 * Names of a request's documents. The provider takes letters, digits, single white space, hyphens,
 * parentheses and brackets, 200 characters at most, and no name twice.
 */
export class DocumentNames {
  readonly #used = new Set<string>();

  /** The name under which the model sees a file. Its extension is the document's format. */
  nameFor(filename: string): string {
    const readable = sanitize(filename.slice(0, 1_000)) || "document";
    let name = readable;
    for (let count = 2; this.#used.has(name); count += 1) name = `${readable} (${count})`;
    this.#used.add(name);
    return name;
  }
}

/** Leaves room for a count. */
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
