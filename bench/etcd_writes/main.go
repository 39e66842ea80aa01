// Keyed writes to a group of etcd servers, by etcd's own client: `baton bench state` builds and runs
// it. Each client has a connection of its own, a key of its own, and one write under way at a time;
// the clients are spread over the servers, and the first one is at the leader's.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/clientv3"
)

const patience = 60 * time.Second

func connect(endpoint string) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, DialTimeout: patience})
	if err != nil {
		log.Fatalf("etcd at %s: %v", endpoint, err)
	}
	return client
}

// leaderFirst waits until the servers know a leader, and puts it at the front.
func leaderFirst(endpoints []string) []string {
	client := connect(endpoints[0])
	defer client.Close()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for i, endpoint := range endpoints {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			status, err := client.Status(ctx, endpoint)
			cancel()
			if err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId {
				return append(append([]string{}, endpoints[i:]...), endpoints[:i]...)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	log.Fatalf("etcd: no leader in %v", patience)
	return nil
}

// write puts one value after the other until the end, and returns how long those took that ended
// after begin. The first one is not among them: it opens the connection.
func write(client *clientv3.Client, key, value string, ready *sync.WaitGroup,
	begin, end func() time.Time) []float64 {
	var took []float64
	for first := true; ; first = false {
		sent := time.Now()
		_, err := client.Put(context.Background(), key, value)
		now := time.Now()
		if err != nil {
			log.Fatalf("etcd: put: %v", err)
		}
		if first {
			ready.Done()
			ready.Wait()
			continue
		}
		if now.After(end()) {
			return took
		}
		if now.After(begin()) {
			took = append(took, float64(now.Sub(sent).Nanoseconds())/1e6)
		}
	}
}

// percentile is the smallest value that at least so many percent of all do not exceed.
func percentile(sorted []float64, percent float64) float64 {
	return sorted[int(math.Max(math.Ceil(percent/100*float64(len(sorted))), 1))-1]
}

func main() {
	endpoints := flag.String("endpoints", "", "HOST:PORT,... of the servers")
	clients := flag.Int("clients", 1, "number of clients")
	bytes := flag.Int("bytes", 256, "bytes of a value")
	warmUp := flag.Duration("warm-up", time.Second, "time that is not measured")
	length := flag.Duration("length", 5*time.Second, "time that is measured")
	flag.Parse()

	at := leaderFirst(strings.Split(*endpoints, ","))
	value := strings.Repeat("x", *bytes)
	results := make([][]float64, *clients)
	var once sync.Once
	var start time.Time
	begin := func() time.Time {
		once.Do(func() { start = time.Now().Add(*warmUp) }) // when the first write of each is done
		return start
	}
	end := func() time.Time { return begin().Add(*length) }
	var ready, done sync.WaitGroup
	ready.Add(*clients)
	done.Add(*clients)
	for i := 0; i < *clients; i++ {
		go func(i int) {
			defer done.Done()
			client := connect(at[i%len(at)])
			defer client.Close()
			results[i] = write(client, fmt.Sprintf("bench/%d", i), value, &ready, begin, end)
		}(i)
	}
	done.Wait()

	var all []float64
	for _, took := range results {
		all = append(all, took...)
	}
	if len(all) == 0 {
		log.Fatalf("etcd: no write was answered in %v", *length)
	}
	sort.Float64s(all)
	json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"writes_per_s": float64(len(all)) / length.Seconds(),
		"p50_ms":       percentile(all, 50),
		"p99_ms":       percentile(all, 99),
	})
}
