import { isObject, type JsonObject } from "../../domain/json-object.ts";
import { exitCodes } from "../../process/program.ts";
import { CommandError } from "../command.ts";
import { readPart } from "../output/reply-fields.ts";

/**
 * Access to the control plane: that of a running gateway, or one in this process on its database.
 */
export interface AdminClient extends AsyncDisposable {
  /** Whether it uses the database directly, without the memory of a running gateway. */
  readonly isOffline: boolean;
  /**
   * Resolves to the parsed answer. `path` follows `/admin/v1`, such as `/keys`. Throws
   * `AdminRefusal` for an error of the control plane, `CommandError` when there is no answer.
   */
  request(method: AdminMethod, path: string, details?: AdminRequestDetails): Promise<unknown>;
  /** The bytes of a long answer. Throws as `request` does, even while the answer is being read. */
  stream(path: string, query: AdminQuery): AsyncIterable<Uint8Array>;
}

export type AdminMethod = "GET" | "POST" | "PATCH" | "DELETE";

/** Query parameters; undefined ones are left out. */
export type AdminQuery = Readonly<Record<string, string | number | undefined>>;

export interface AdminRequestDetails {
  readonly query?: AdminQuery;
  readonly body?: JsonObject;
  /** Makes a change idempotent. Default: a random one. */
  readonly idempotencyKey?: string | undefined;
}

export interface RefusalDetails {
  readonly status: number;
  readonly code: string | null;
  readonly message: string;
  readonly param?: string | null;
}

export class AdminRefusal extends CommandError {
  override readonly exitCode: number;
  readonly status: number;
  readonly code: string | null;
  readonly param: string | null;

  constructor({ status, code, message, param = null }: RefusalDetails) {
    super(message);
    // A value that the control plane refuses was mistyped.
    this.exitCode = status === 400 ? exitCodes.usage : exitCodes.failed;
    this.status = status;
    this.code = code;
    this.param = param;
  }
}

/** Reads an error of the control plane; any other body is reported by its status. */
export function readRefusal(status: number, body: unknown): AdminRefusal {
  const { message, code, param } = (isObject(body) ? readPart(body, "error") : undefined) ?? {};
  return new AdminRefusal({
    status,
    code: typeof code === "string" ? code : null,
    message: typeof message === "string" ? message : `the answer was an error of status ${status}`,
    param: typeof param === "string" ? param : null,
  });
}

export function textsOf(fields: JsonObject): Record<string, string> {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}
