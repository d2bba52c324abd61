/** Why the admin API did not do what was asked, in its own words. */
export class ApiFailure extends Error {
  override readonly name = "ApiFailure";
  /** 0: no answer has come. */
  readonly status: number;
  readonly code: string | null;
  /** The field at fault. */
  readonly param: string | null;
  readonly requestId: string | undefined;

  constructor(message: string, facts: Partial<Omit<ApiFailure, keyof Error>> = {}) {
    super(message);
    this.status = facts.status ?? 0;
    this.code = facts.code ?? null;
    this.param = facts.param ?? null;
    this.requestId = facts.requestId;
  }

  /** Whether the request may succeed when it is repeated as it is. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export type Answer<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly failure: ApiFailure };

/** Reads an error body; other texts, such as that of a proxy, are not shown. */
export async function failureOf(response: Response): Promise<ApiFailure> {
  const facts = {
    status: response.status,
    requestId: response.headers.get("x-request-id") ?? undefined,
  };
  const body: unknown = await response.json().catch(() => undefined);
  return failureIn(body, facts);
}

/** The same of a body that was read, such as the last event of a stream that failed. */
export function failureIn(
  body: unknown,
  facts: Pick<ApiFailure, "status" | "requestId">,
): ApiFailure {
  const error = fieldOf(body, "error");
  const message = fieldOf(error, "message");
  if (typeof message !== "string") {
    return new ApiFailure(`The gateway answered ${facts.status}. Try again.`, facts);
  }
  const [code, param] = [fieldOf(error, "code"), fieldOf(error, "param")];
  return new ApiFailure(message, {
    ...facts,
    code: typeof code === "string" ? code : null,
    param: typeof param === "string" ? param : null,
  });
}

function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}
