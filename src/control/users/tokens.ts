import { randomBase62 } from "../../domain/keys/base62.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { generateManagementToken, tokenHint } from "../../domain/accounts/management-token.ts";
import {
  roles,
  type ManagementToken,
  type Principal,
  type Scope,
  type User,
} from "../../domain/accounts/user.ts";
import type { ControlView } from "../../store/control-store.ts";
import { changeOf } from "../audit/audit-fields.ts";
import { change, type Change } from "../operation/change.ts";
import { tokenSchema, type TokenView } from "../contract/access.ts";
import {
  issuedTokenSchema,
  newTokenSchema,
  tokenQuerySchema,
} from "../contract/access-requests.ts";
import { listOf } from "../contract/values.ts";
import { invalidField } from "../operation/field-error.ts";
import { defineOperation } from "../operation/define-operation.ts";
import type { Operation } from "../operation/operation.ts";
import { notFound } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { viewAs } from "../values/api-form.ts";

export type TokenServices = Pick<
  AdminServices,
  "store" | "clock" | "random" | "peppers" | "onKeysChanged"
>;

/** `/admin/v1/tokens`: the credentials of scripts. */
export function tokenOperations(services: TokenServices): readonly Operation[] {
  return [createOperation(services), listOperation(services), revokeOperation(services)];
}

const path = "/admin/v1/tokens";
const dayMs = 24 * 60 * 60 * 1000;

function createOperation(services: TokenServices): Operation {
  return defineOperation({
    id: "createToken",
    method: "POST",
    path,
    resource: "Tokens",
    summary: "Make a management token",
    description:
      "The secret is in this answer only. A token acts as its user, yours or, for operators, any, " +
      "and never allows more than its maker. One that is made with a token ends with that token, and " +
      "works no longer than it.",
    roles,
    scope: "write",
    status: 201,
    body: newTokenSchema,
    answer: issuedTokenSchema,
    hasSecret: true,
    run({ call, body }) {
      const wanted = new Set<Scope>(body.scopes ?? call.principal.scopes);
      requireOwnScopes(call.principal, wanted);
      const { publicId, text } = generateManagementToken(services.random);
      return change(services, call, async (made) => {
        const user = await requireUser(made.transaction, call.principal, body.user_id);
        const parent = await requireParent(made, call.principal);
        const endsAt = made.now + body.expires_in_days * dayMs;
        const token: ManagementToken = {
          id: `tok_${randomBase62(16, services.random)}`,
          userId: user.id,
          name: body.name,
          publicId,
          parentId: parent?.id,
          ...services.peppers.digest(text),
          scopes: call.principal.scopes.filter((scope) => wanted.has(scope)),
          createdAt: made.now,
          expiresAt: Math.min(endsAt, parent?.expiresAt ?? endsAt),
          lastUsedAt: undefined,
          revokedAt: undefined,
        };
        await made.transaction.tokens.insert(token);
        const entry = changeOf("token", "create", { after: token });
        await made.audit({ ...entry, accountId: user.accountId });
        return { token: viewToken(token, user.email), secret: text };
      });
    },
  });
}

function listOperation(services: TokenServices): Operation {
  return defineOperation({
    id: "listTokens",
    method: "GET",
    path,
    resource: "Tokens",
    summary: "Management tokens, newest first: your own, for operators those of all.",
    roles,
    scope: "read",
    status: 200,
    query: tokenQuerySchema,
    answer: listOf(tokenSchema),
    async run({ call, query }) {
      const { principal } = call;
      const userId = isOperator(principal) ? query.user_id : principal.userId;
      if (query.user_id !== undefined && query.user_id !== userId) throw notFound("user");
      const { limit, cursor } = query;
      return services.store.read(async (view) => {
        const page = await view.tokens.list({ userId }, { limit, after: cursor });
        const emails = await readEmails(view, page.items);
        const data = page.items.map((token) => viewToken(token, emails.get(token.userId) ?? ""));
        return { data, next_cursor: page.next ?? null };
      });
    },
  });
}

function revokeOperation(services: TokenServices): Operation {
  return defineOperation({
    id: "revokeToken",
    method: "DELETE",
    path: `${path}/{id}`,
    resource: "Tokens",
    summary: "Revoke a management token; again, it changes nothing.",
    description: "Tokens that were made with it end too, and what was made with those.",
    roles,
    scope: "write",
    status: 200,
    answer: tokenSchema,
    run({ call, parameters }) {
      return change(services, call, async (made) => {
        const { tokens, users } = made.transaction;
        const token = await tokens.get(parameters.id ?? "");
        const isOwn = token?.userId === call.principal.userId;
        if (token === undefined || !(isOwn || isOperator(call.principal))) throw notFound("token");
        const user = await users.get(token.userId);
        if (token.revokedAt !== undefined) return viewToken(token, user?.email ?? "");
        const revoked = { ...token, revokedAt: made.now };
        const ended = await tokens.revoke(token.id, made.now);
        const madeWithIt = ended.filter((id) => id !== token.id);
        const entry = changeOf("token", "revoke", { before: token, after: revoked });
        const told = {
          ...entry.after,
          ...(madeWithIt.length > 0 && { ended_with_it: madeWithIt }),
        };
        await made.audit({ ...entry, accountId: user?.accountId, after: told });
        return viewToken(revoked, user?.email ?? "");
      });
    },
  });
}

function isOperator({ role }: Principal): boolean {
  return role === "operator";
}

function requireOwnScopes(principal: Principal, wanted: ReadonlySet<Scope>): void {
  if (wanted.isSubsetOf(new Set(principal.scopes))) return;
  throw new GatewayError("not_permitted", {
    message: `A token may not make one with other scopes than its own: ${principal.scopes.join(", ")}.`,
    param: "scopes",
  });
}

async function requireUser(
  view: ControlView,
  principal: Principal,
  wanted: string | undefined,
): Promise<User> {
  const userId = wanted ?? principal.userId;
  if (userId !== principal.userId && !isOperator(principal)) throw notFound("user");
  if (userId === undefined) {
    throw invalidField(
      "user_id",
      "name the user that the token is for: the local access of this machine is none",
    );
  }
  const user = await view.users.get(userId);
  // The user may have been disabled since the request came in.
  if (user === undefined || user.disabledAt !== undefined) throw notFound("user");
  return user;
}

/** The token that another one is made with. Throws when it has ended since the request came in. */
async function requireParent(
  { transaction, now }: Change,
  { tokenId }: Principal,
): Promise<ManagementToken | undefined> {
  if (tokenId === undefined) return undefined;
  const token = await transaction.tokens.get(tokenId);
  const isOver = token === undefined || token.revokedAt !== undefined || token.expiresAt <= now;
  if (isOver) throw new GatewayError("not_signed_in", { message: "The token has just ended." });
  return token;
}

/** Reads at most as many users as the page has tokens. */
async function readEmails(
  view: ControlView,
  tokens: readonly ManagementToken[],
): Promise<ReadonlyMap<string, string>> {
  const emails = new Map<string, string>();
  for (const id of new Set(tokens.map((token) => token.userId))) {
    emails.set(id, (await view.users.get(id))?.email ?? "");
  }
  return emails;
}

function viewToken(token: ManagementToken, user: string): TokenView {
  const { parentId, publicId } = token;
  return viewAs(tokenSchema, token, {
    user,
    made_with: parentId ?? null,
    hint: tokenHint(publicId),
  });
}
