/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The limit on kernel memory that pins of all users take for bookkeeping.
 *
 * A pin is charged by a formula before the NVIDIA driver is asked, and the
 * same number is given back.  One user gets seven eighths at most, so that
 * others can still work.  Root is not limited, and counted apart, so that its
 * pins take nothing from the users.
 */
#include "internal.h"

#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>

#define MAX_MB (1U << 20)

struct gdrdrv_account {
	struct list_head link;
	kuid_t uid;
	unsigned int refs;	/* sessions */
	u64 used;
};

static DEFINE_SPINLOCK(pool_lock);
static LIST_HEAD(accounts);
static u64 used, exempt;
static unsigned int dma_pool_size_mb = 128;

static int set_size(const char *text, const struct kernel_param *param)
{
	unsigned int mb;
	int ret = kstrtouint(text, 0, &mb);

	if (ret)
		return ret;
	if (mb > MAX_MB)
		return -ERANGE;
	WRITE_ONCE(*(unsigned int *)param->arg, mb);
	return 0;
}

static const struct kernel_param_ops size_ops = {
	.set = set_size,
	.get = param_get_uint,
};
module_param_cb(dma_pool_size_mb, &size_ops, &dma_pool_size_mb, 0644);
MODULE_PARM_DESC(dma_pool_size_mb, "kernel memory for the bookkeeping of all users' pins (128)");

static u64 limit_bytes(void)
{
	return (u64)READ_ONCE(dma_pool_size_mb) << 20;
}

static u64 user_share(u64 limit)
{
	return limit - limit / 8;
}

static bool is_exempt(const struct gdrdrv_account *account)
{
	return uid_eq(account->uid, GLOBAL_ROOT_UID);
}

static struct gdrdrv_account *find_account(kuid_t uid)
{
	struct gdrdrv_account *account;

	list_for_each_entry(account, &accounts, link)
		if (uid_eq(account->uid, uid))
			return account;
	return NULL;
}

struct gdrdrv_account *gdrdrv_account_get(kuid_t uid)
{
	struct gdrdrv_account *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT), *account;

	if (!fresh)
		return NULL;
	spin_lock(&pool_lock);
	account = find_account(uid);
	if (!account) {
		account = fresh;
		fresh = NULL;
		account->uid = uid;
		list_add(&account->link, &accounts);
	}
	account->refs++;
	spin_unlock(&pool_lock);
	kfree(fresh);
	return account;
}

void gdrdrv_account_put(struct gdrdrv_account *account)
{
	bool last;

	spin_lock(&pool_lock);
	last = --account->refs == 0;
	if (last)
		list_del(&account->link);
	spin_unlock(&pool_lock);
	if (last)
		kfree(account);
}

int gdrdrv_pool_charge(struct gdrdrv_account *account, u64 bytes)
{
	u64 limit = limit_bytes(), all, own;
	bool fits;

	spin_lock(&pool_lock);
	all = used;
	own = account->used;
	fits = is_exempt(account) ||
	       (all + bytes <= limit && own + bytes <= user_share(limit));
	if (fits) {
		account->used += bytes;
		*(is_exempt(account) ? &exempt : &used) += bytes;
	}
	spin_unlock(&pool_lock);
	if (fits)
		return 0;
	pr_err_ratelimited("out of dma memory: user %u needs %llu bytes and has %llu of %llu, all users have %llu of %llu (dma_pool_size_mb)\n",
			   __kuid_val(account->uid), bytes, own, user_share(limit), all, limit);
	return -ENOMEM;
}

void gdrdrv_pool_give_back(struct gdrdrv_account *account, u64 bytes)
{
	spin_lock(&pool_lock);
	account->used -= bytes;
	*(is_exempt(account) ? &exempt : &used) -= bytes;
	spin_unlock(&pool_lock);
}

struct gdrdrv_pool_use gdrdrv_pool_read(void)
{
	struct gdrdrv_pool_use use = { .limit = limit_bytes() };

	use.user_limit = user_share(use.limit);
	spin_lock(&pool_lock);
	use.used = used;
	use.exempt = exempt;
	spin_unlock(&pool_lock);
	return use;
}
