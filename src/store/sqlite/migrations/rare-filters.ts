/** Indexes for lists and counts of keys, applications and users, also by rare values. */
export const rareFilters = `
  CREATE INDEX keys_live_by_account ON keys (account_id) WHERE revoked_at IS NULL;
  CREATE INDEX keys_by_plan ON keys (plan, created_at, id);
  CREATE INDEX applications_by_environment ON applications (environment, created_at, id);
  CREATE INDEX users_by_role ON users (role, created_at, id);
`;
