import { randomBase62 } from "../../domain/keys/base62.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { generateManagementToken, tokenHint } from "../../domain/keys/api-key.ts";
import { roles, type Principal, type Scope } from "../../domain/principal.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import { changeOf } from "../audit/audit-fields.ts";
import type { Change } from "../operation/change.ts";
import {
  tokenSchema,
  type TokenView,
  issuedTokenSchema,
  newTokenSchema,
  tokenQuerySchema,
} from "../contract/access.ts";
import { invalidField, notPermitted } from "../operation/refusals.ts";
import { type Operation, permissions } from "../operation/operation.ts";
import { ResourceOperations } from "../operation/resource-operations.ts";
import { notFound } from "../operation/scope.ts";
import { listedUser, readEmails, requireOwn } from "./own.ts";
import type { AdminServices } from "../services.ts";
import { viewAs } from "../values/api-form.ts";
import type { ManagementToken, User } from "../../store/entities.ts";

export type TokenServices = Pick<
  AdminServices,
  "store" | "clock" | "random" | "peppers" | "onKeysChanged"
>;

/** `/admin/v1/tokens`: the credentials of scripts. */
export function tokenOperations(services: TokenServices): readonly Operation[] {
  const tokens: TokenOperations = new ResourceOperations(
    {
      kind: "token",
      reads: permissions.read,
      changes: { roles, scope: "write" },
      schema: tokenSchema,
      find: async (view, id, principal) =>
        requireOwn(await view.tokens.get(id), principal, "token"),
      show: showTokens,
    },
    services,
  );
  return [createToken(tokens, services), listTokens(tokens), revokeToken(tokens)];
}

type TokenOperations = ResourceOperations<"token", TokenView>;

const dayMs = 24 * 60 * 60 * 1000;

function createToken(tokens: TokenOperations, { random, peppers }: TokenServices): Operation {
  return tokens.create({
    id: "createToken",
    summary: "Create a management token",
    description:
      "The token is shown only in this response. It acts as its user: you or, for operators, " +
      "anyone. It never allows more than its creator may do. A token created with another " +
      "token ends with it.",
    body: newTokenSchema,
    answer: issuedTokenSchema,
    hasSecret: true,
    async run({ changing, call: { principal }, body, show }) {
      const wanted = new Set<Scope>(body.scopes ?? principal.scopes);
      requireOwnScopes(principal, wanted);
      const { transaction, now } = changing;
      const user = await requireUser(transaction, principal, body.user_id);
      const parent = await requireParent(changing, principal);
      const endsAt = now + body.expires_in_days * dayMs;
      const { publicId, text } = generateManagementToken(random);
      const token: ManagementToken = {
        id: `tok_${randomBase62(16, random)}`,
        userId: user.id,
        name: body.name,
        publicId,
        parentId: parent?.id,
        ...peppers.digest(text),
        scopes: principal.scopes.filter((scope) => wanted.has(scope)),
        createdAt: now,
        expiresAt: Math.min(endsAt, parent?.expiresAt ?? endsAt),
        lastUsedAt: undefined,
        revokedAt: undefined,
      };
      await transaction.tokens.insert(token);
      const entry = changeOf("token", "create", { after: token });
      await changing.audit({ ...entry, accountId: user.accountId });
      return { token: await show(token), secret: text };
    },
  });
}

function listTokens(tokens: TokenOperations): Operation {
  return tokens.list({
    id: "listTokens",
    summary: "List management tokens, newest first",
    query: tokenQuerySchema,
    find({ view, principal, query, page }) {
      return view.tokens.list({ userId: listedUser(principal, query.user_id) }, page);
    },
  });
}

function revokeToken(tokens: TokenOperations): Operation {
  return tokens.change({
    id: "revokeToken",
    method: "DELETE",
    summary: "Revoke a management token",
    description: "Tokens created with it end too, recursively.",
    answer: tokenSchema,
    async run({ changing: { transaction, now, audit }, entity: before, show }) {
      if (before.revokedAt !== undefined) return show(before);
      const after = { ...before, revokedAt: now };
      const ended = await transaction.tokens.revoke(before.id, now);
      const madeWithIt = ended.filter((id) => id !== before.id);
      const entry = changeOf("token", "revoke", { before, after });
      const told = { ...entry.after, ...(madeWithIt.length > 0 && { ended_with_it: madeWithIt }) };
      const user = await transaction.users.get(before.userId);
      await audit({ ...entry, accountId: user?.accountId, after: told });
      return show(after);
    },
  });
}

function requireOwnScopes(principal: Principal, wanted: ReadonlySet<Scope>): void {
  if (wanted.isSubsetOf(new Set(principal.scopes))) return;
  const own = principal.scopes.join(", ");
  throw notPermitted(`A token can only create tokens with its own scopes: ${own}.`, "scopes");
}

async function requireUser(
  view: ControlView,
  principal: Principal,
  wanted: string | undefined,
): Promise<User> {
  const userId = wanted ?? principal.userId;
  if (userId !== principal.userId && principal.role !== "operator") throw notFound("user");
  if (userId === undefined) {
    throw invalidField("user_id", "name the token's user; local access has none");
  }
  const user = await view.users.get(userId);
  // The user may have been disabled since the request came in.
  if (user === undefined || user.disabledAt !== undefined) throw notFound("user");
  return user;
}

/** The token that creates another one. Throws when it has ended since the request arrived. */
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

function showTokens(view: ControlView): (token: ManagementToken) => Promise<TokenView> {
  const emailOf = readEmails(view);
  return async (token) => {
    const { userId, parentId, publicId } = token;
    return viewAs(tokenSchema, token, {
      user: await emailOf(userId),
      made_with: parentId ?? null,
      hint: tokenHint(publicId),
    });
  };
}
