import { cellOf, readPart, readText } from "../output/reply-fields.ts";
import { switches } from "../verbs/verb.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";

export const users: ResourceSpec = {
  name: "users",
  example: "ada@example.com",
  about:
    "An operator can do everything, an account holder manages the applications and keys of " +
    "one account, an auditor only reads. Passwords are read from a file or standard input.",
  verbs: [
    {
      name: "create",
      operation: "createUser",
      argument: "email",
      examples: [
        'users create ada@example.com --role account_holder --account "Example Shop" --password-file -',
        "users create audit@example.com --role auditor",
      ],
      // A user without a password signs in by single sign-on.
      notes: (_, { has_password: has }) => (has === true ? [] : [withoutPassword]),
    },
    {
      name: "list",
      operation: "listUsers",
      summary: "List users, newest first",
      columns: ["id", "email", "name", "role", "account_id", "last_sign_in_at", "disabled_at"],
      whenEmpty: "No users found.",
      examples: ["users list --role operator"],
    },
    { name: "show", operation: "getUser", summary: "Show a user" },
    {
      name: "update",
      operation: "updateUser",
      without: ["password"],
      examples: ["users update ada@example.com --role operator --account none"],
    },
    ...switches("updateUser", {
      disable: [
        "Stop a user: end all sessions and tokens, and refuse sign-ins",
        "Its sessions and tokens have ended.",
      ],
      enable: ["Let a disabled user sign in again", "It can sign in again."],
    }),
    { name: "delete", operation: "deleteUser", done: "is deleted." },
    {
      name: "set-password",
      operation: "updateUser",
      summary: "Give a user a new password, which ends the user's sessions",
      only: ["password"],
      texts: { password: { default: "-" } },
      done: "has a new password; all its sessions have ended.",
      examples: [
        "users set-password ada@example.com",
        "users set-password ada@example.com --password-file ada-password.txt",
      ],
    },
    {
      name: "link",
      operation: "createSignInLink",
      summary: "Make a link with which a user chooses a password and signs in, once",
      texts: { expires_in_hours: { value: "24" } },
      show({ io }, answer) {
        const email = cellOf(readPart(answer, "user") ?? {}, "email");
        io.print(readText(answer, "url"));
        io.report(`Send it to ${email}. It works once, until ${cellOf(answer, "expires_at")}.`);
      },
      examples: ["users link ada@example.com", "users link ada@example.com --expires-in-hours 72"],
    },
  ],
};

const withoutPassword = "Without a password it can only use single sign-on; see `users link`.";

export const tokens: ResourceSpec = {
  name: "tokens",
  example: "tok_0123456789abcdef",
  about:
    "A management token acts as its user, within its scopes, until it expires. Set " +
    "SLUICE_ADMIN_TOKEN, or put it into a file for --token-file.",
  verbs: [
    {
      name: "create",
      operation: "createToken",
      argument: "name",
      texts: { scopes: { value: "read,write" } },
      show({ io }, answer) {
        const token = readPart(answer, "token") ?? {};
        io.print(readText(answer, "secret"));
        io.report(
          `Token ${cellOf(token, "id")} of ${cellOf(token, "user")}, until ${cellOf(token, "expires_at")}.`,
        );
        io.report("Store it now: it is not shown again.");
      },
      examples: ["tokens create deployment --user ada@example.com --scopes read --expires-in 30d"],
    },
    {
      name: "list",
      operation: "listTokens",
      summary: "List management tokens, newest first",
      columns: ["id", "name", "hint", "user", "scopes", "expires_at", "last_used_at", "revoked_at"],
      whenEmpty: "No tokens found.",
      examples: ["tokens list", "tokens list --user ada@example.com"],
    },
    {
      name: "revoke",
      operation: "revokeToken",
      summary: "Revoke a management token",
      done: "is revoked.",
    },
  ],
};

export const sessions: ResourceSpec = {
  name: "sessions",
  example: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  about: "The browsers that are signed in to the control plane. Without a verb: the list.",
  verbs: [
    {
      name: "list",
      isDefault: true,
      operation: "listSessions",
      columns: ["id", "user", "address", "created_at", "last_seen_at", "expires_at"],
      whenEmpty: "Nobody is signed in.",
      examples: ["sessions", "sessions list --user ada@example.com"],
    },
    {
      name: "end",
      operation: "endSession",
      summary: "End a session",
      show: ({ io }) => io.report("The session has ended."),
    },
  ],
};
