/** The headers that signing adds; the token only if the credentials have one. */
export interface AddedHeaders {
  readonly host: string;
  readonly "x-amz-content-sha256": string;
  readonly "x-amz-date": string;
  readonly "x-amz-security-token"?: string;
}

export interface CanonicalHeaders {
  /** Names in order, separated by semicolons. */
  readonly signedNames: string;
  /** One line for each header, each with its line end. */
  readonly lines: string;
}

/**
 * Puts headers into the form that is signed: names in lower case and sorted, values trimmed. An
 * adapter sends few constant sets of headers, so the result for each set is cached.
 */
export class CanonicalHeadersWriter {
  readonly #forms = new WeakMap<Headers, Form>();

  write(own: Headers, added: AddedHeaders): CanonicalHeaders {
    const form = this.#formOf(own, added["x-amz-security-token"] !== undefined);
    let lines = "";
    for (const piece of form.pieces) {
      lines += typeof piece === "string" ? piece : `${piece.name}:${added[piece.name] ?? ""}\n`;
    }
    return { signedNames: form.signedNames, lines };
  }

  #formOf(own: Headers, hasToken: boolean): Form {
    const known = this.#forms.get(own);
    if (known?.hasToken === hasToken) return known;
    const form = makeForm(own, hasToken);
    this.#forms.set(own, form);
    return form;
  }
}

type Headers = Readonly<Record<string, string>>;

interface Form {
  readonly hasToken: boolean;
  readonly signedNames: string;
  /** Finished lines, or the header whose line changes from request to request. */
  readonly pieces: readonly (string | { readonly name: keyof AddedHeaders })[];
}

/** Headers that proxies rewrite. */
const unsignedHeaders: ReadonlySet<string> = new Set([
  "accept-encoding",
  "traceparent",
  "user-agent",
]);

const alwaysAdded = ["host", "x-amz-content-sha256", "x-amz-date"] as const;
const withToken = [...alwaysAdded, "x-amz-security-token"] as const;

function makeForm(own: Headers, hasToken: boolean): Form {
  const added = (hasToken ? withToken : alwaysAdded).map((name) => ({ name, piece: { name } }));
  const fixed = Object.entries(own)
    .filter(([name]) => !unsignedHeaders.has(name))
    .map(([name, value]) => ({ name, piece: `${name}:${canonicalValue(value)}\n` }));
  const ordered = [...fixed, ...added].toSorted((one, other) => (one.name < other.name ? -1 : 1));
  return {
    hasToken,
    signedNames: ordered.map(({ name }) => name).join(";"),
    pieces: ordered.map(({ piece }) => piece),
  };
}

function canonicalValue(value: string): string {
  return value.trim().replaceAll(/\s+/g, " ");
}
