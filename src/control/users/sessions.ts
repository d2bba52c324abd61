import type { AdminSettings } from "../../config/config.ts";
import { roles } from "../../domain/principal.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import type { Session } from "../../store/entities.ts";
import { changeOf } from "../audit/audit-fields.ts";
import { openSessionSchema, type OpenSessionView, sessionQuerySchema } from "../contract/access.ts";
import { type Operation, permissions } from "../operation/operation.ts";
import { ResourceOperations } from "../operation/resource-operations.ts";
import type { AdminServices } from "../services.ts";
import { viewAs } from "../values/api-form.ts";
import { listedUser, readEmails, requireOwn } from "./own.ts";

export interface SessionServices extends Pick<AdminServices, "store" | "clock" | "onKeysChanged"> {
  readonly settings: Pick<AdminSettings, "sessionIdleMs">;
}

/** `/admin/v1/sessions`: the browsers that are signed in. */
export function sessionOperations(services: SessionServices): readonly Operation[] {
  const sessions = new ResourceOperations<"session", OpenSessionView>(
    {
      kind: "session",
      reads: permissions.read,
      changes: { roles, scope: "write" },
      schema: openSessionSchema,
      find: async (view, id, principal) =>
        requireOwn(await view.sessions.get(id), principal, "session"),
      show: showSessions,
    },
    services,
  );
  return [
    sessions.list({
      id: "listSessions",
      summary: "List open sessions, newest first",
      query: sessionQuerySchema,
      find({ view, principal, query, page }) {
        const now = services.clock.now();
        const open = { now, usedSince: now - services.settings.sessionIdleMs };
        return view.sessions.list({ userId: listedUser(principal, query.user_id), open }, page);
      },
    }),
    sessions.delete({
      id: "endSession",
      summary: "End a session",
      async run({ changing: { transaction, audit }, entity: session }) {
        const user = await transaction.users.get(session.userId);
        await transaction.sessions.delete(session.id);
        const subject = { type: "user", id: session.userId };
        const entry = changeOf("session", "end", { before: session });
        await audit({ ...entry, subject, accountId: user?.accountId });
      },
    }),
  ];
}

function showSessions(view: ControlView): (session: Session) => Promise<OpenSessionView> {
  const emailOf = readEmails(view);
  return async (session) =>
    viewAs(openSessionSchema, session, { user: await emailOf(session.userId) });
}
