/* SPDX-License-Identifier: MIT */
/*
 * Rank 0 gives its part to the buffers of all other ranks before they gather.  Ranks
 * are threads, each with a GPU of its own; a table tells where a rank's memory is.
 *
 * cc -pthread -I<prefix>/include/gdrcopy all_gather.c -L<prefix>/lib -lgdrapi -lcudart
 */
#include <cuda_runtime.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

#define MAX_RANKS 16
#define PART ((size_t)1 << 20)

struct rank {
	int number;
	pthread_t thread;
	void *memory;	/* a part for each rank */
	int right;
};

static struct rank ranks[MAX_RANKS];
static int rank_count;
static pthread_barrier_t barrier;

static void *memory_of(int rank)
{
	return ranks[rank].memory;
}

static unsigned char pattern(size_t at)
{
	return (unsigned char)(at * 11 + (at >> 9) + 5);
}

static void give_to_all(size_t size)
{
	uint64_t own, other;
	gdr_t g;

	GDR(gdr_open(&g));
	GDR(gdr_pin_buffer(g, (uint64_t)(uintptr_t)memory_of(0), size, 0, 0, &own));
	for (int rank = 1; rank < rank_count; rank++) {
		GDR(gdr_pin_buffer(g, (uint64_t)(uintptr_t)memory_of(rank), size, 0, rank, &other));
		GDR(gdr_copy_to_device(g, own, other, 0, 0, size));
		GDR(gdr_unpin(g, other));
	}
	GDR(gdr_unpin(g, own));
	GDR(gdr_close(g));
}

static void *run_rank(void *arg)
{
	struct rank *rank = arg;
	unsigned char *host = malloc(PART);

	CUDA(cudaSetDevice(rank->number));
	CUDA(cudaMalloc(&rank->memory, PART * (size_t)rank_count));
	CUDA(cudaMemset(rank->memory, 0, PART * (size_t)rank_count));
	for (size_t i = 0; i < PART; i++)
		host[i] = pattern(i);
	if (rank->number == 0)
		CUDA(cudaMemcpy(rank->memory, host, PART, cudaMemcpyHostToDevice));
	CUDA(cudaDeviceSynchronize());
	pthread_barrier_wait(&barrier);
	if (rank->number == 0)
		give_to_all(PART);
	pthread_barrier_wait(&barrier);

	memset(host, 0, PART);
	CUDA(cudaMemcpy(host, rank->memory, PART, cudaMemcpyDeviceToHost));
	rank->right = 1;
	for (size_t i = 0; i < PART; i++)
		rank->right &= host[i] == pattern(i);
	pthread_barrier_wait(&barrier);
	CUDA(cudaFree(rank->memory));
	free(host);
	return NULL;
}

int main(void)
{
	int right = 0;

	CUDA(cudaGetDeviceCount(&rank_count));
	rank_count = rank_count < MAX_RANKS ? rank_count : MAX_RANKS;
	pthread_barrier_init(&barrier, NULL, (unsigned)rank_count);
	for (int i = 0; i < rank_count; i++) {
		ranks[i].number = i;
		pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]);
	}
	for (int i = 0; i < rank_count; i++) {
		pthread_join(ranks[i].thread, NULL);
		right += ranks[i].right;
	}
	pthread_barrier_destroy(&barrier);
	printf("%d of %d ranks have the part of rank 0\n", right, rank_count);
	return right == rank_count && rank_count > 1 ? 0 : 1;
}
