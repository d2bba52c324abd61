import { definedFields, idempotencyOption } from "./change-fields.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { UsageError, type Command } from "../command.ts";
import {
  changeEntity,
  deleteVerb,
  showVerb,
  switchVerb,
  titleWithName,
  type Entity,
} from "./entity-verbs.ts";
import { findAccountId, findUser } from "./find-entity.ts";
import { readPassword } from "../read-input.ts";
import { createResourceCommand } from "../resource-command.ts";
import { pageOptions, showList, showRecord } from "../output/show-reply.ts";
import { defineVerb } from "../verb.ts";

const takes = "USER";

const user: Entity<never> = {
  noun: "user",
  path: "/users",
  takes,
  options: {},
  example: "ada@example.com",
  find: ({ client, args }) => findUser(client, args.one("user by its id or email address")),
  title: titleWithName("User", "email"),
};

const columns = [
  { title: "ID", of: "id" },
  { title: "EMAIL", of: "email" },
  { title: "NAME", of: "name" },
  { title: "ROLE", of: "role" },
  { title: "ACCOUNT", of: "account_id" },
  { title: "LAST SIGN-IN", of: "last_sign_in_at" },
  { title: "DISABLED", of: "disabled_at" },
];

const roleText = "operator, account_holder or auditor";

const passwordOption = {
  "password-file": {
    type: "string",
    value: "FILE",
    about: "file with the password; `-`: standard input",
  },
} as const;

const createVerb = defineVerb({
  name: "create",
  takes: "EMAIL",
  summary: "let somebody sign in",
  options: {
    role: { type: "string", value: "ROLE", about: roleText },
    account: {
      type: "string",
      value: "ACCOUNT",
      about: "of an account holder; may bind an auditor",
    },
    name: { type: "string", value: "NAME", about: "how people call the user" },
    ...passwordOption,
    ...idempotencyOption,
  },
  examples: [
    'users create ada@example.com --role account_holder --account "Example Shop" --password-file -',
    "users create audit@example.com --role auditor",
  ],
  async run(call) {
    const { args, client, io, isJson } = call;
    const email = args.one("email address");
    const role = args.required("role");
    const file = args.text("password-file");
    // Without a password the user comes in by single sign-on.
    const password = file === undefined ? undefined : await readPassword(pathOrInput(file), io);
    const account_id = await findAccountId(client, args.text("account"));
    const body = definedFields({ email, role, account_id, name: args.text("name"), password });
    const idempotencyKey = args.text("idempotency-key");
    showRecord(call, await client.request("POST", "/users", { body, idempotencyKey }));
    if (password === undefined && !isJson) {
      io.report(
        "Without a password it signs in by single sign-on alone; see `users set-password`.",
      );
    }
    return exitCodes.ok;
  },
});

const listVerb = defineVerb({
  name: "list",
  summary: "list users",
  options: {
    account: { type: "string", value: "ACCOUNT", about: "only of this account" },
    role: { type: "string", value: "ROLE", about: `only of this role: ${roleText}` },
    email: { type: "string", value: "EMAIL", about: "only this one" },
    ...pageOptions,
  },
  examples: ["users list --role operator"],
  async run(call) {
    const { args, client } = call;
    args.none();
    const query = {
      role: args.text("role"),
      email: args.text("email")?.toLowerCase(),
      account_id: await findAccountId(client, args.text("account")),
    };
    return showList(call, {
      path: "/users",
      query,
      columns,
      whenEmpty: "There are no such users.",
    });
  },
});

const updateVerb = defineVerb({
  name: "update",
  takes,
  summary: "change the name, role or account",
  options: {
    name: { type: "string", value: "NAME", about: "a new name" },
    role: { type: "string", value: "ROLE", about: `a new role: ${roleText}` },
    account: { type: "string", value: "ACCOUNT", about: "another account; `none`: of no account" },
  },
  examples: ["users update ada@example.com --role operator --account none"],
  async run(call) {
    const { args, client } = call;
    const account = args.text("account");
    const given = definedFields({ name: args.text("name"), role: args.text("role"), account });
    if (Object.keys(given).length === 0) throw new UsageError("say what to change");
    const found = await user.find(call);
    const fields = definedFields({
      name: args.text("name"),
      role: args.text("role"),
      account_id: account === "none" ? null : await findAccountId(client, account),
    });
    showRecord(call, await changeEntity(call, { path: user.path, found, fields }));
    return exitCodes.ok;
  },
});

const setPasswordVerb = defineVerb({
  name: "set-password",
  takes,
  summary: "give a user a new password, which ends the user's sessions",
  options: passwordOption,
  examples: [
    "users set-password ada@example.com",
    "users set-password ada@example.com --password-file ada-password.txt",
  ],
  async run(call) {
    const { args, io } = call;
    args.one("user by its id or email address");
    const password = await readPassword(pathOrInput(args.text("password-file") ?? "-"), io);
    const found = await user.find(call);
    const changed = await changeEntity(call, { path: user.path, found, fields: { password } });
    if (call.isJson) showRecord(call, changed);
    else io.report(`${user.title(found)} has a new password; all its sessions are ended.`);
    return exitCodes.ok;
  },
});

function pathOrInput(file: string): string | undefined {
  return file === "-" ? undefined : file;
}

export const usersCommand: Command = createResourceCommand({
  name: "users",
  summary: "people who sign in to the control plane",
  about: `An operator may do everything, an account holder manages one account's applications and
keys, an auditor reads. Passwords come from a file or standard input.`,
  verbs: [
    createVerb,
    listVerb,
    showVerb(user),
    updateVerb,
    switchVerb(user, {
      name: "disable",
      summary: "end all sessions and tokens of a user and let nobody sign in as it",
      effect: "Its sessions and tokens are ended.",
    }),
    switchVerb(user, {
      name: "enable",
      summary: "let a disabled user sign in again",
      effect: "It may sign in again.",
    }),
    deleteVerb(user, { name: "delete", summary: "remove a user", effect: "" }),
    setPasswordVerb,
  ],
});
