import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Principal } from "../../domain/accounts/user.ts";
import { jsonReply } from "../../edge/replies/reply.ts";
import type { AnonymousAdminCall, Route } from "../../edge/dispatch/route.ts";
import { reportedLeaksSchema } from "../contract/leak-reports.ts";
import { takeLeakReport, type LeakReportServices } from "./leak-reports.ts";
import type { ReportKeys } from "./report-keys.ts";
import { readFields } from "../sign-in/read-fields.ts";
import { fromStorageError } from "../operation/storage-error.ts";

/** The actor in the audit. */
const scanner: Principal = {
  kind: "system",
  userId: undefined,
  name: "secret scanning",
  role: "operator",
  accountId: undefined,
  scopes: [],
};

/**
 * The endpoint for secret scanners, whose reports are signed as in GitHub's partner program. The
 * signature is the only credential.
 */
export function signedLeakReports(services: LeakReportServices, keys: ReportKeys): Route {
  return {
    method: "POST",
    path: "/admin/v1/leaks/signed-reports",
    access: "anonymous",
    async handle(call) {
      const body = await call.readBody();
      await requireSignature(call, body, keys);
      const leaks = await readFields(
        { readBody: () => Promise.resolve(body) },
        reportedLeaksSchema,
      );
      const { id, signal, address } = call;
      try {
        const visit = { id, signal, address, principal: scanner };
        const { data } = await takeLeakReport(services, visit, leaks);
        return jsonReply(data);
      } catch (error) {
        throw fromStorageError(error);
      }
    },
  };
}

async function requireSignature(
  { request }: AnonymousAdminCall,
  body: Uint8Array,
  keys: ReportKeys,
): Promise<void> {
  const keyId = request.headers.get("github-public-key-identifier");
  const signature = request.headers.get("github-public-key-signature");
  const isRight =
    keyId !== null && signature !== null && (await keys.isRight({ body, keyId, signature }));
  if (isRight) return;
  throw new GatewayError("not_signed_in", {
    message:
      "The report is not signed with a configured key. Send the headers " +
      "Github-Public-Key-Identifier and Github-Public-Key-Signature.",
  });
}
