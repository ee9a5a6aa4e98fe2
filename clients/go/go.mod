module postbote

go 1.19
