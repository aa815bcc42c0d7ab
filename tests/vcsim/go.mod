module leadline.example/vcsim-fleet

go 1.19

require github.com/vmware/govmomi v0.30.7

require github.com/google/uuid v1.3.0 // indirect
